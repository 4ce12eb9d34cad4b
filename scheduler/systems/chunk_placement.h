#pragma once

#include <cstdint>

#include "platform/units.h"
#include "scheduler/profile.h"
#include "scheduler/systems/system_plan.h"

// Where PatrickStar and Colossal-AI's Gemini put the chunks of one GPU's share. They measure in a
// first step what else the GPU holds, and leave on it what fits: first the 16-bit parameters, whose
// chunks the gradients take over; then optimizer state, up to a margin. The rest moves.
//
//   const ChunkPlacement chunks = place_chunks(plan, profile);
//   chunks.moving   // elements that come to the GPU and leave it in every pass
namespace offstage::scheduler::systems {

struct ChunkPlacement {
  std::int64_t owned = 0;         // parameters of this GPU's share
  std::int64_t moving = 0;        // of these, those whose 16-bit chunks live in CPU memory
  std::int64_t state_on_gpu = 0;  // of these, those that the GPU updates
  platform::Bytes buffers;        // on the GPU: chunks on their way
};

// All GPUs share alike. With `parameters` and `optimizer` automatic, as the memory beside the
// activations allows; otherwise as the strategy says.
// Errors: Error(bad_input) when the profile says nothing about offloading.
// Source: PatrickStar, core/memtracer/memtracer.py, update_margin_mem.
ChunkPlacement place_chunks(const SystemPlan& plan, const Profile& profile);

// A chunk. Source: PatrickStar, examples/run_transformers.sh: 256 Mi elements are the default,
// and what its chunk search ends at or near for the models of 2 to 60 billion parameters.
inline constexpr std::int64_t kChunkElements = std::int64_t{256} << 20;

}  // namespace offstage::scheduler::systems
