#pragma once

#include <cstdint>
#include <string>

#include "platform/document.h"

// The knobs of the systems that others train with, as a config's `strategy: {system: ...}` fixes
// them. What a user runs today is one of these; offstage's own method is strategy.h.
namespace offstage::scheduler::systems {

enum class System {
  ddp,            // every GPU has everything; gradients are summed while backward goes on
  zero1,          // ZeRO: the data-parallel ranks share the optimizer's state,
  zero2,          // and gradients,
  zero3,          // and parameters
  fsdp,           // PyTorch's ZeRO-3: parameters gathered unit by unit, prefetched
  zero_offload,   // ZeRO-1 or -2 with the optimizer and its state on the CPU
  zero3_offload,  // ZeRO-3 with optimizer state, and perhaps parameters, on CPU or NVMe
  megatron,       // tensor x pipeline x data parallel, 1F1B
  patrickstar,    // chunks move between CPU and GPU as they are needed (PatrickStar, Gemini)
  harmony,        // packs of layers swap through the GPUs, each pack's micro-batches together
};

enum class Place { gpu, cpu, nvme, automatic };  // automatic: patrickstar moves chunks

// What backward computes again: nothing; attention's core (Korthikanti et al., arXiv 2205.05198);
// every block from its input.
enum class Recompute { none, selective, full };

struct SystemStrategy {
  System system = System::ddp;
  // GPUs = data x tensor x pipeline.
  std::int64_t data = 1, tensor = 1, pipeline = 1;
  int sharding = 0;  // ZeRO stage: what the data-parallel ranks share (0: nothing)
  bool sequence_parallel = false;
  std::int64_t micro_batch = 1;  // sequences in one forward of a data-parallel rank
  Recompute recompute = Recompute::none;
  Place parameters = Place::gpu;   // between their uses; cpu or nvme need sharding 3
  Place optimizer = Place::gpu;    // its state, and who updates: nvme state is updated by the CPU
  Place activations = Place::gpu;  // the inputs of blocks, where `recompute` is full
  bool overlap_communication = true;  // collectives beside compute, on a stream of their own
  bool pinned_memory = true;          // CPU buffers that GPUs copy from
  // Elements gathered before a reduction starts (DeepSpeed's reduce_bucket_size, DDP's bucket).
  std::int64_t bucket_elements = 0;  // 0: the system's default
  // ZeRO-3: parameters gathered ahead, and the most that are gathered at once.
  std::int64_t prefetch_elements = 0, live_elements = 0;
  // Parameters that are smaller than this stay on every GPU.
  std::int64_t persistent_elements = 0;
  // With the optimizer on CPU or NVMe: elements updated, or on the way, at once.
  std::int64_t sub_group_elements = 0;
  // Threads of each process's optimizer on the CPU; 0: what the profile says its launcher sets.
  std::int64_t optimizer_threads = 0;
};

// `default_strategy` of a system on so many GPUs: all of them data parallel (megatron: tensor
// parallel), defaults of its documentation.
SystemStrategy default_strategy(System system, std::int64_t gpus);

// Reads a map with the key `system`; the parallel sizes left out are derived so that
// data x tensor x pipeline = gpus.
// Errors: Error(bad_input) with place, allowed values and nearest match; also for knobs that
// contradict the system.
SystemStrategy read_system_strategy(const platform::Node& node, std::int64_t gpus);

// Errors: Error(bad_input) without a place, naming the knob: sizes that do not multiply to `gpus`,
// parameters off the GPU without sharding 3, ...
void require_consistent(const SystemStrategy& strategy, std::int64_t gpus);

// The profile of the software that is usually meant: a name in calibration/profiles.
std::string default_profile(System system);

std::string to_string(System system);
std::string to_string(Place place);
std::string to_string(Recompute recompute);

}  // namespace offstage::scheduler::systems
