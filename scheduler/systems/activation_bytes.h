#pragma once

#include "platform/units.h"
#include "scheduler/systems/system_plan.h"

// What published systems keep of a layer's forward pass for its backward pass, on one GPU and of
// one micro-batch. They run PyTorch's kernels one after the other, so that every operation's input
// is kept: other bytes than those of our own executor (workloads/working_set.h).
//
//   kept_bytes(plan, 1)   // GPT, nothing recomputed: s b h (34 + 5 a s / h)
namespace offstage::scheduler::systems {

// Everything that backward of the layer reads, when nothing is computed again.
// Source: Korthikanti et al., arXiv 2205.05198, section 4.1, tensor by tensor; gated feed-forwards,
// fewer key heads and fused attention follow the same rule (an operation keeps its inputs).
platform::Bytes full_bytes(const SystemPlan& plan, std::size_t layer);

// What waits from forward to backward: all of it, all but attention's core, or a block's input.
platform::Bytes kept_bytes(const SystemPlan& plan, std::size_t layer);

// What running backward of the layer takes beside what was kept for it: what it computes again, and
// for the head everything that the loss makes of the logits.
platform::Bytes working_bytes(const SystemPlan& plan, std::size_t layer);

// The most that a GPU of a stage holds at once: what all micro-batches on their way keep (as many
// as there are stages from this one on, with 1F1B; all of them where each layer sees all before the
// next one) and what the layer takes that needs most.
platform::Bytes activation_peak(const SystemPlan& plan, std::size_t stage);

// Of blocks' inputs that wait in CPU memory, of one GPU.
platform::Bytes offloaded_activations(const SystemPlan& plan);

}  // namespace offstage::scheduler::systems
