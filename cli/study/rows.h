#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/study/spec.h"
#include "scheduler/run_config.h"
#include "sim/job_processes.h"

// The rows of a study, computed: each is a plan (searched for where its strategy is open) and its
// simulation, in a process of its own.
namespace offstage::cli {

// Errors: Error(bad_input) with place for what is wrong whatever the other values of a row are,
// such as a key that is misspelt: a value with which no row can be read. Values that only don't go
// together are left for the rows to say. Simulates nothing.
void check_study(const StudySpec& study, const scheduler::DataDirectories& directories);

// One row's job. Its text is a JSON object: `status` and `reason`, `fits`, the figures of the step,
// plan and strategy, and `wall_s`. status: ok; does_not_fit; impossible, when the values do not go
// together. Borrows both.
sim::TextJob row_job(const StudySpec& study, std::size_t index,
                     const scheduler::DataDirectories& directories);

// The result of a job that ended in any way; one that failed has the status `failed`.
nlohmann::json row_result(const sim::FinishedJob& job);

// The figures of a row, in the order in which tables have them.
const std::vector<std::string>& result_keys();

// Computes rows, handing each over as it is ready; how is up to where the study runs.
using RowDone = std::function<void(std::size_t row, nlohmann::json result)>;
using RunRows = std::function<void(std::span<const std::size_t> rows, const RowDone& done)>;

// In at most `workers` child processes at a time. Borrows both.
RunRows rows_in_processes(const StudySpec& study, const scheduler::DataDirectories& directories,
                          int workers);

}  // namespace offstage::cli
