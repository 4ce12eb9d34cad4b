#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "platform/error.h"

// The folder of a study: finished rows are kept as they finish, so that the same command goes on
// where the last one was ended, be it with kill -9 or a power cut in the middle of a line.
//
//   rows.jsonl   a line for each start of a study, and one for each finished row, synced
//   data.csv     the rows as a table, once all are there
//   timing.csv   how long each took to compute: the only figures that differ from run to run
namespace offstage::cli {

// Who writes the rows.
struct StudyStart {
  std::string study_hash;
  std::string version;
  std::string program;  // program_hash()
  std::size_t rows = 0;
};

class StudyFolder {
 public:
  // Makes the folder where there is none, and reads the rows that are there; `restart` forgets
  // them. A line that was cut short is cut off.
  // Errors: Error(io) when the folder or file can't be made, read or written, or another study
  // writes there; Error(bad_usage) when the rows are of another offstage.
  StudyFolder(const std::filesystem::path& folder, const StudyStart& start, bool restart);
  ~StudyFolder();
  StudyFolder(const StudyFolder&) = delete;
  StudyFolder& operator=(const StudyFolder&) = delete;

  // The result of a row, if it is there.
  const nlohmann::json* find(const std::string& config_hash) const;
  // Whether rows are there that were computed for a study which has changed since.
  bool has_changed() const { return has_changed_; }
  std::filesystem::path file(const std::string& name) const { return folder_ / name; }

  // Returns when the row is on disk. Errors: Error(io).
  void append(const std::string& config_hash, const nlohmann::json& result);

 private:
  void open(bool restart);
  void read(const StudyStart& start);
  void read_line(const std::string& line, const StudyStart& start);
  void write_line(const nlohmann::json& object);
  Error failure(const std::string& what) const;

  std::filesystem::path folder_, path_;
  int descriptor_ = -1;
  std::optional<std::string> last_study_;  // hash, of the last start
  bool has_changed_ = false;
  std::map<std::string, nlohmann::json> results_;  // by config hash
};

}  // namespace offstage::cli
