#pragma once

#include "scheduler/systems/graph_writer.h"
#include "scheduler/systems/system_plan.h"

// Data parallelism with whole parameters on every GPU: DDP, ZeRO-1 and ZeRO-2, and ZeRO-Offload,
// where gradients go to the CPU, which has the optimizer.
//
// Gradients are gathered into buckets while backward runs from the last layer to the first; a full
// bucket is summed over the ranks beside the compute. DDP and ZeRO-1 do so for the step's last
// micro-batch only, ZeRO-2 for every one, since it keeps no more than its share. All ranks wait for
// the norm of all gradients; then each updates everything (DDP) or its share, which an all-gather
// hands to the others.
// Source: DeepSpeed, runtime/zero/stage_1_and_2.py; Li et al., arXiv 2006.15704 (DDP).
//
// Note [Gradients that wait on the CPU]
// ZeRO-Offload sends a rank's share of each summed bucket to the CPU. With several micro-batches it
// sums them on the GPU: 16-bit sums come back, and go out again unless it is the last one, whose
// gradients go out in f32. After the update the f32 parameters come to the GPU, which rounds them.
// Source: the same file, async_accumulate_grad_in_cpu_via_gpu,
// async_inplace_copy_grad_to_fp32_buffer_from_gpu and step.
namespace offstage::scheduler::systems {

// Precondition: one stage.
void write_data_parallel_step(const SystemPlan& plan, GraphWriter& writer);

}  // namespace offstage::scheduler::systems
