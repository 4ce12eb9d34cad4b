#pragma once

#include <cstdint>
#include <vector>

#include "exec/blocks.h"
#include "workloads/layer_table.h"

// Models small enough to train in a test, and the flat arrays a step over them needs.
namespace offstage::exec::testing {

workloads::Model gpt2_model();
// Four query heads on each of two key heads.
workloads::Model llama_model(bool tied);
// Biases on q, k and v; as many key heads as query heads.
workloads::Model qwen_model();

workloads::LayerTable table_of(const workloads::Model& model, std::int64_t micro_batch,
                               std::int64_t sequence_length);

// By layer: flat weights.
using LayerArrays = std::vector<std::vector<float>>;
// Initial weights, with norms and biases moved off 1 and 0 so that their gradients matter.
LayerArrays make_weights(const workloads::LayerTable& table, std::uint64_t seed);

struct MicroBatch {
  std::vector<std::int64_t> inputs, targets;
};
std::vector<MicroBatch> make_batches(const workloads::LayerTable& table, int count,
                                     std::uint64_t seed);

struct StepResult {
  LayerArrays gradients;             // by layer, laid out like the weights
  std::vector<float> tied_gradient;  // the head's part, where it is tied
  double loss = 0.0;                 // summed over all tokens
};

// The step cut before each layer in `cuts` (ascending, the first one 0), sub-model-major.
StepResult partitioned_step(const workloads::LayerTable& table,
                            const std::vector<std::size_t>& cuts, const LayerArrays& weights,
                            const std::vector<MicroBatch>& batches);

}  // namespace offstage::exec::testing
