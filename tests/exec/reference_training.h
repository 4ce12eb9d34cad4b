#pragma once

#include <cstdint>

#include "scheduler/plan.h"
#include "scheduler/run_config.h"
#include "tests/exec/training_setup.h"

// What a training must have come to, whatever its plan: the model as one piece.
namespace offstage::exec::testing {

// Gradients by autograd, each GPU's micro-batches one after the other, then the sum over GPUs from
// GPU 0 upwards; then clipping and the optimizer kernel, over all parameters at once. Of the plan
// it takes the model and the batch; the shards, for the order of the norm; the precisions; in bf16,
// the cuts, where activations are rounded (reference_training.cpp says what else is).
Outcome reference_training(const scheduler::Plan& plan, const scheduler::TrainConfig& config,
                           std::int64_t steps);

}  // namespace offstage::exec::testing
