#pragma once

#include <filesystem>
#include <string>

#include "scheduler/run_config.h"

// Where the program's own files are: platform/catalog, workloads/models, calibration/profiles, and
// the programs that stand beside it.
namespace offstage::cli {

// The program that is running, with all links followed.
// Errors: Error(io) where /proc is missing.
std::filesystem::path program_path();

// The folder that holds platform/catalog and the others: `given` when not empty, else the source
// folder this program was built from, else a folder above the program, so that a checkout can be
// moved.
// Errors: Error(bad_usage) when `given` is no such folder; Error(io) when there is none.
std::filesystem::path find_data_folder(const std::string& given);

scheduler::DataDirectories data_directories(const std::filesystem::path& data_folder);

}  // namespace offstage::cli
