#pragma once

#include <map>
#include <string>
#include <vector>

#include "calibration/stack_fit.h"
#include "platform/machine.h"

// Small trainings, carried out one task at a time: how long each kind of task takes when it has the
// computer to itself, with the operands where the executor leaves them. Micro-benchmarks with
// everything in the cache are too fast by far.
namespace offstage::calibration {

// Work and time of the tasks of one kind and size.
struct TaskSample {
  double amount = 0.0;  // bytes, or elements of a pass of a core
  platform::Seconds measured;
};

struct ProbeResult {
  std::vector<PassSample> passes;
  std::vector<TaskSample> copies;
  // By the names of scheduler/core_passes.h, and "update" for that of f32 state.
  std::map<std::string, std::vector<TaskSample>> passes_of_cores;
  std::vector<TaskSample> all_gathers, reduce_scatters;
};

// Trains a handful of models of different shapes on the machine's virtual GPUs, serially, on
// made-up text, timed by the processor time of the one thread. Machine and profile have the
// measured rates already; passes are described with them.
// Errors: those of the executor; Error(io) when the text can't be written.
ProbeResult run_probes(const platform::Machine& machine, const scheduler::Profile& profile);

// How much longer a training's tasks take when all cores carry out one each, by core and
// repetition: caches, memory and sometimes the cores themselves are shared. 1: no longer. Errors:
// as run_probes.
std::vector<double> measure_slowdowns(const platform::Machine& machine, int cores);

}  // namespace offstage::calibration
