#pragma once

#include <optional>
#include <string>

#include <CLI/App.hpp>

#include "cli/command.h"
#include "cli/study/rows.h"

// The command `study` but for where its rows are computed, which is in processes of this computer
// or, with MPI, of several.
namespace offstage::cli {

struct StudyOptions {
  CommonOptions common;
  std::string file, out, csv, svg, report;
  std::optional<int> workers;  // 0: one for each core this process may use
  bool restart = false;
  bool mpi = false;
};

// Tells CLI11 about all options but the common ones.
void describe_study_options(CLI::App& command, StudyOptions& options);

// Chosen by the user, or else `otherwise`.
int workers_of(const StudyOptions& options, int otherwise);

// Reads the study, has the rows computed that are not in its folder yet, and says what came out.
// The exit status: kAnswerIsNo when no row could be simulated, kFailed when one failed.
// `run_rows` is given the study to say how they are computed.
using MakeRunRows =
    std::function<RunRows(const StudySpec& study, const scheduler::DataDirectories& directories)>;
int run_study(const StudyOptions& options, const MakeRunRows& run_rows);

}  // namespace offstage::cli
