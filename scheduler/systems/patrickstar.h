#pragma once

#include "scheduler/profile.h"
#include "scheduler/systems/graph_writer.h"
#include "scheduler/systems/system_plan.h"

// PatrickStar, and Colossal-AI's Gemini, which works alike: chunks of parameters that move between
// CPU and GPU as chunk_placement.h says. Chunks that do not stay come for a pass and go after it,
// with the gradients in their place on the way back. With several GPUs a layer's chunks are
// gathered from their owners, and gradients summed to them. The update takes the GPU's part there,
// and for the other sends gradients to the CPU and brings f32 parameters back. The process does one
// after the other: nothing overlaps.
// Source: PatrickStar at 2384535, core/chunk_list.py (access_chunk), ops/fp16_cpu_adam.py and
// ops/chunk_io_buff.py; its asynchronous moves are off by default (examples/run_transformers.sh).
namespace offstage::scheduler::systems {

// Precondition: one stage.
void write_patrickstar_step(const SystemPlan& plan, const Profile& profile, GraphWriter& writer);

}  // namespace offstage::scheduler::systems
