#pragma once

#include "scheduler/systems/graph_writer.h"

// Megatron-LM's step (Narayanan et al., arXiv 2104.04473): tensor ranks compute together, stages
// pass micro-batches on in the 1F1B order, data ranks add up their gradients when the last
// micro-batch is through, then everybody's optimizer runs.
namespace offstage::scheduler::systems {

void write_megatron_step(const SystemPlan& plan, GraphWriter& writer);

}  // namespace offstage::scheduler::systems
