#pragma once

#include <cstddef>

#include "scheduler/systems/graph_writer.h"
#include "scheduler/systems/system_plan.h"

// Sharded parameters: ZeRO-3 and FSDP, and ZeRO-3 with optimizer state, and perhaps parameters, in
// CPU memory or on drives (ZeRO-Infinity).
//
// A layer's parameters are gathered shortly before forward, dropped, and gathered again for
// backward; while one layer computes, those of the next `layers_ahead` are on their way. Its
// gradients are summed and dealt out in every micro-batch. Nothing is gathered after the update:
// the next step does.
// Source: DeepSpeed, runtime/zero/stage3.py and partitioned_param_coordinator.py; Zhao et al.,
// PyTorch FSDP, arXiv 2304.11277, sections 3.3 and 3.4.
//
// Note [Gradients of sharded parameters on the CPU]
// A rank's share goes to the CPU in 16 bits and comes back, to be added to and for its norm, in
// every micro-batch. The last micro-batch's sums go out once more, to be widened there.
// Source: DeepSpeed stage3.py, partition_grads, in 0.6.5 to 0.14.
namespace offstage::scheduler::systems {

// Layers whose parameters are on their way while one computes: as many blocks as the prefetched
// elements hold, and one at least, since DeepSpeed prefetches tensor by tensor.
std::size_t layers_ahead(const SystemPlan& plan);

// Precondition: one stage.
void write_zero3_step(const SystemPlan& plan, GraphWriter& writer);

}  // namespace offstage::scheduler::systems
