#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platform/error.h"

// Jobs in child processes that are started one by one and collected as they end, for those who have
// more to do meanwhile; process_pool.h is for all others.
namespace offstage::sim {

// What it returns travels to the parent as it is: text, or any other bytes.
struct TextJob {
  std::string name;  // for messages: "simulation of plan 3"
  std::function<std::string()> run;
};

struct FinishedJob {
  std::size_t id = 0;
  std::string text;
  // That the job threw, or Error(device) with its name and what became of its process.
  std::optional<Error> error;
};

class JobProcesses {
 public:
  JobProcesses();
  ~JobProcesses();  // ends those that still run
  JobProcesses(const JobProcesses&) = delete;
  JobProcesses& operator=(const JobProcesses&) = delete;

  // Errors: Error(device) when the system has no process or pipe left.
  // Thread: as run_in_processes.
  void start(std::size_t id, const TextJob& job);
  std::size_t running() const;
  // Those that ended since the last call, in no particular order. Waits until one has, or for
  // `longest`; not at all when none runs.
  std::vector<FinishedJob> wait(std::optional<std::chrono::milliseconds> longest = {});

 private:
  struct Child;
  std::vector<std::unique_ptr<Child>> children_;
};

}  // namespace offstage::sim
