#pragma once

#include <string>

#include "platform/document.h"
#include "platform/machine.h"

// How software that keeps state in CPU memory works there: the section `offload` of a profile.
// Copies over PCIe and the memory traffic of an update are bounded by the machine; these are the
// limits that the software sets itself.
namespace offstage::scheduler {

// Threads of one process's optimizer where several processes train. A process alone has all cores.
enum class OptimizerThreads {
  one,    // torchrun sets OMP_NUM_THREADS to 1 unless told otherwise
  share,  // the cores divided by the processes
};

struct OffloadStack {
  platform::Sourced<OptimizerThreads> threads;
  // One core's time for all that is done to a parameter on the CPU in a step.
  platform::Sourced<platform::Seconds> core_time_per_parameter;
  // Of a copy between a GPU and memory that is not pinned: staged, and its process waits for it.
  platform::Sourced<platform::BytesPerSecond> pageable_copy;
  // Part of a GPU's memory that a system which places by itself counts on, and part of what is then
  // left for optimizer state (PatrickStar's overall_gpu_mem_ratio and margin_use_ratio).
  platform::Sourced<double> gpu_memory_part;
  platform::Sourced<double> state_part;
};

// Errors: Error(bad_input) with place.
OffloadStack read_offload_stack(const platform::Node& node);
// The section as YAML, so that read_offload_stack finds the same again.
std::string offload_stack_text(const OffloadStack& stack);

}  // namespace offstage::scheduler
