#pragma once

#include <optional>
#include <string>

#include "platform/machine.h"
#include "scheduler/core_passes.h"
#include "scheduler/eager_stack.h"
#include "scheduler/offload_stack.h"
#include "scheduler/step_range.h"

// Numbers that belong to a software stack rather than to a machine: how close its kernels come to
// the machine's tables, how many bytes its optimizer moves, how fast its host code launches. Read
// from calibration/profiles/NAME.yaml or a path; every number has its source.
namespace offstage::scheduler {

struct Profile {
  std::string name;
  std::string file;
  platform::Sourced<platform::Seconds> launch_interval;  // of the stack; the larger of this and the
                                                         // machine's counts
  platform::Sourced<double> gemm_efficiency;             // of the machine's GEMM table, (0, 1.5]
  platform::Sourced<double> attention_efficiency;        // of the machine's attention table, or,
                                                         // unfused, of its GEMM table
  platform::Sourced<double> memory_efficiency;           // of the machine's memory bandwidth
  platform::Sourced<double> transcendental_efficiency;   // the same, for element-wise operations
                                                         // that evaluate tanh or exp
  platform::Sourced<double> optimizer_bytes_per_parameter_bf16;  // DRAM traffic of an update
  platform::Sourced<double> optimizer_bytes_per_parameter_f32;
  platform::Sourced<double> optimizer_efficiency;      // of the route's narrowest link
  platform::Sourced<platform::Seconds> task_overhead;  // of the executor, on each task's engine
  // Of software that others wrote and that keeps state in CPU memory.
  std::optional<OffloadStack> offload;
  // Of software that issues its kernels from Python.
  std::optional<EagerStack> eager;
  // Of a stack whose GPUs are cores; absent: guessed from the machine.
  std::optional<CorePasses> core_passes;
  // Where measured steps lay beside predicted ones.
  std::optional<StepRange> step_range;
};

// Errors: Error(bad_input) with place, as document.h.
Profile load_profile(const std::string& name_or_path, const std::string& profiles_directory);
void write_profile(const Profile& profile, const std::string& path);

}  // namespace offstage::scheduler
