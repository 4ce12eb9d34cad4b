#pragma once

#include "scheduler/systems/graph_writer.h"
#include "scheduler/systems/system_plan.h"

// Harmony's data-parallel schedule: the model is swapped through every GPU layer by layer (its
// packs), and all micro-batches pass through a layer before the next one comes. Each GPU fetches
// whole layers; gradients are summed among the GPUs, go out in shares, and are applied in CPU
// memory. Fetches run one layer ahead of the compute.
// Source: Li et al., Harmony, arXiv 2202.01306, section 4 (input-batch grouping, jit update,
// prefetch).
namespace offstage::scheduler::systems {

// Precondition: one stage.
void write_harmony_step(const SystemPlan& plan, GraphWriter& writer);

}  // namespace offstage::scheduler::systems
