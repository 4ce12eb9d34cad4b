#pragma once

#include "scheduler/systems/graph_writer.h"
#include "scheduler/systems/system_plan.h"

// The optimizer's step of ZeRO-3 with its state in CPU memory or on drives: sub-group by sub-group
// of every rank's share, which is all that has to be in CPU memory at once. From drives, a
// sub-group's state is read while the one before is updated and written back while the next one is.
// Parameters that live on the GPU come there in 16 bits; those that live in CPU memory are rounded
// into place by the same pass.
// Source: DeepSpeed, stage3.py, step, and swap_tensor/pipelined_optimizer_swapper.py.
namespace offstage::scheduler::systems {

void write_cpu_updates(const SystemPlan& plan, GraphWriter& writer, const After& gradients);

}  // namespace offstage::scheduler::systems
