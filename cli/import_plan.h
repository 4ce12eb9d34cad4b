#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include "scheduler/run_config.h"

// offstage plan --import: a file that another system trains with, asked the same questions as a run
// config: does it fit, how fast, and how would our own plan do?
namespace offstage::cli {

struct ImportOptions {
  std::string file;  // empty: nothing is imported
  std::string model, platform;
  std::optional<std::int64_t> sequence_length, global_batch, micro_batch, gpus;
  std::string recompute;  // empty: as the file says
};

void add_import_options(CLI::App& command, ImportOptions& options);

// Prints the answer and returns the exit status: 0 fits, 1 does not fit, 2 the file has faults (its
// findings are printed all the same, for they are what was asked for).
// Errors: Error(bad_usage) when --model or --platform is missing; Error(bad_input) when the file
// can't be read at all.
int run_import(const ImportOptions& options, const scheduler::DataDirectories& directories,
               bool json);

}  // namespace offstage::cli
