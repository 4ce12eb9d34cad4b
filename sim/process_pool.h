#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/job_processes.h"

// Runs each job in a child process of its own. SimGrid allows one simulation per process, and
// children keep simulations apart: each starts from the same state, and all cores are used.
namespace offstage::sim {

struct ProcessJob {
  std::string name;  // for messages: "simulation of plan 3"
  std::function<std::vector<double>()> run;
};

// Results in the order of the jobs, at most `workers` children at a time.
// Errors (both): the first failed job's, after all have ended: the Error that it threw, or
// Error(device) with the job's name and what became of its process.
// Thread: call while the process has one thread only; a child has no other threads.
std::vector<std::vector<double>> run_in_processes(std::span<const ProcessJob> jobs, int workers);
std::vector<std::string> run_in_processes(std::span<const TextJob> jobs, int workers);

// Hands every job's result over as soon as it is there, a failed one's too; `id` is the job's
// position. Errors: what `done` throws, after the running jobs were ended.
void run_in_processes(std::span<const TextJob> jobs, int workers,
                      const std::function<void(FinishedJob)>& done);

// As many workers as this process may use cores.
int default_workers();

}  // namespace offstage::sim
