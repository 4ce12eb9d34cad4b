#pragma once

#include <map>
#include <string>

#include "cli/study/spec.h"
#include "scheduler/run_config.h"

// What tells the rows of studies apart, whoever computes them and whenever.
namespace offstage::cli {

class StudyIdentity {
 public:
  // Borrows the study. Errors: Error(io) when the program's data can't be read.
  StudyIdentity(const StudySpec& study, const scheduler::DataDirectories& directories);

  // Of a row: its run config, what the files hold that it names, and the steps simulated. Of the
  // data that come with the program everything counts, since those files name each other. 32 hex
  // digits (XXH3-128). Errors: as StudySpec::config.
  std::string config_hash(const StudyRow& row);
  // Of the study as a whole, to notice that it changed.
  std::string study_hash() const;

 private:
  const std::string& hash_of_file(const std::string& path);
  std::string hashes_of_files(const platform::Document& config);

  const StudySpec& study_;
  std::string data_hash_;
  std::map<std::string, std::string> file_hashes_;  // by path
};

// Of the program `offstage` that this is, or that stands beside this one: a program built anew may
// compute other rows, whatever its version says. Errors: Error(io).
std::string program_hash();

}  // namespace offstage::cli
