#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/exec/small_models.h"

// What the executor's results are measured against: the model as one piece, from torch's own
// functions, differentiated by autograd.
namespace offstage::exec::testing {

// Gradients and loss of one step, micro-batch after micro-batch, each weight's gradients added by
// autograd. With tied embeddings the head reads a matrix of its own that starts equal, so that the
// two parts of its gradient are summed apart. Before each layer in `rounded` the activations are
// rounded to bf16, and their gradients on the way back. The loss is divided by the tokens of these
// micro-batches, or of a step that has others too.
StepResult reference_step(const workloads::LayerTable& table, const LayerArrays& weights,
                          const std::vector<MicroBatch>& batches,
                          const std::vector<std::size_t>& rounded = {},
                          std::optional<std::int64_t> step_tokens = std::nullopt);

}  // namespace offstage::exec::testing
