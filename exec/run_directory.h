#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

// The folder of a run: its checkpoints, and
//   plan.json, run.yaml   what it carries out
//   metrics.jsonl         one JSON object a step
//   log.txt               what happened when
//   control.sock          where `offstage status` and the other commands ask (run_service.h)
//   lock                  held while a run lives there; names its process
namespace offstage::exec {

class RunDirectory {
 public:
  // Makes the folder if need be, and takes its lock. A lock whose process is gone is no lock.
  // Errors: Error(bad_input) naming the process that lives there; Error(io) when the folder can't
  // be made or written.
  explicit RunDirectory(std::string path);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const;

  // Sets everything an earlier run left here aside, into a folder earlier-1, earlier-2, ...
  // Returns it; empty when there was nothing. Errors: Error(io).
  std::string set_aside_earlier_run() const;

  // A line of log.txt, with date and time. Thread: any. A failing disk is not reported.
  void log(std::string_view line);
  // Metrics begin, or go on after step `done`: lines of later steps, from a run that was
  // interrupted, are dropped. Errors: Error(io).
  void open_metrics(std::int64_t done);
  // Appends a line. A failing disk is reported once, in the log and on stderr, and does no more.
  void add_metrics(const nlohmann::json& line);

 private:
  void take_lock();

  std::string path_;
  int lock_ = -1;
  std::ofstream metrics_;
  bool metrics_failed_ = false;
};

}  // namespace offstage::exec
