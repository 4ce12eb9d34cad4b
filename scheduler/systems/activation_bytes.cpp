#include "scheduler/systems/activation_bytes.h"

#include <algorithm>
#include <cstdint>

#include "scheduler/plan.h"
#include "workloads/layer_table.h"
#include "workloads/model.h"

namespace offstage::scheduler::systems {

using platform::Bytes;
using workloads::LayerKind;
using workloads::Model;

namespace {

constexpr std::int64_t kMask = 1;   // a dropout mask, a byte for every element
constexpr std::int64_t kFloat = 4;  // an f32

// A cross entropy in f32 over 16-bit logits, as PyTorch runs it: the logits and their shifted copy
// (2 bytes each), log-probabilities, and the gradients of these and of the logits in f32 (4 each).
// Source: transformers' causal language models; OPT-13B's GPU peak grows by 1.19 GiB a sequence of
// 1024 (hpcaitech/OPT-Benchmark at 947a145, README), of which 0.39 GiB are the blocks' inputs: 16.6
// bytes for each of 1024 x 50272 logits are left.
constexpr std::int64_t kLossBytes = 16;

// One rank's sizes. Hidden is the whole stream's, the others are the rank's slice.
class BlockBytes {
 public:
  explicit BlockBytes(const SystemPlan& plan)
      : model_(plan.table.model),
        tokens_(plan.strategy.micro_batch * plan.workload.sequence_length),
        sequence_(plan.workload.sequence_length),
        element_(element_bytes(plan.workload.precision).activation),
        shared_by_(plan.strategy.sequence_parallel ? plan.strategy.tensor : 1),
        fused_(plan.table.batch.kernels.attention == workloads::AttentionKernel::fused),
        dropout_(plan.table.batch.kernels.dropout) {}

  // The stream between the layers' parts.
  std::int64_t stream() const { return element_ * tokens_ * model_.hidden / shared_by_; }

  // Scores after softmax, what dropout leaves of them and its mask; fused kernels keep one f32 a
  // token and head instead.
  std::int64_t attention_core() const {
    if (fused_) return kFloat * tokens_ * model_.heads;
    const std::int64_t scores = tokens_ * model_.heads * sequence_;
    return scores * (dropout_ ? 2 * element_ + kMask : element_);
  }

  std::int64_t all() const {
    const std::int64_t query = model_.heads * model_.head_dim;
    const std::int64_t key = model_.kv_heads * model_.head_dim;
    // Inputs of the norms, of the first products after them; queries, keys, values; the input of
    // attention's last product.
    std::int64_t bytes = stream() * model_.norms_per_block + stream() * 2;
    bytes += element_ * tokens_ * (2 * query + 2 * key);
    bytes += attention_core();
    // GELU: its input and output. Gated: gate, its activation, the other factor, their product.
    bytes += element_ * tokens_ * model_.ffn * (model_.gated ? 4 : 2);
    const std::int64_t mask = kMask * tokens_ * model_.hidden / shared_by_;
    return bytes + (dropout_ ? 2 * mask : 0);
  }

 private:
  const Model& model_;
  std::int64_t tokens_, sequence_, element_, shared_by_;
  bool fused_, dropout_;
};

// The head's norm, and the input of its product.
std::int64_t head_bytes(const BlockBytes& block) { return 2 * block.stream(); }

}  // namespace

Bytes full_bytes(const SystemPlan& plan, std::size_t layer) {
  const BlockBytes block(plan);
  switch (plan.table.layer(layer).kind) {
    case LayerKind::embedding:
      return {};
    case LayerKind::block:
      return {block.all()};
    case LayerKind::head:
      return {head_bytes(block)};
  }
  return {};
}

Bytes kept_bytes(const SystemPlan& plan, std::size_t layer) {
  const BlockBytes block(plan);
  if (plan.table.layer(layer).kind != LayerKind::block) return full_bytes(plan, layer);
  switch (plan.strategy.recompute) {
    case Recompute::none:
      return {block.all()};
    case Recompute::selective:
      return {block.all() - block.attention_core()};
    case Recompute::full:
      return {plan.strategy.activations == Place::gpu ? block.stream() : 0};
  }
  return {};
}

Bytes working_bytes(const SystemPlan& plan, std::size_t layer) {
  const BlockBytes block(plan);
  switch (plan.table.layer(layer).kind) {
    case LayerKind::embedding:
      return {};
    case LayerKind::block: {
      if (plan.strategy.recompute == Recompute::none) return {};
      const bool all = plan.strategy.recompute == Recompute::full;
      return {all ? block.all() : block.attention_core()};
    }
    case LayerKind::head: {
      const std::int64_t known = plan.table.batch.kernels.loss_memory_bytes_per_logit;
      return {(known > 0 ? known : kLossBytes) * plan.strategy.micro_batch *
              plan.workload.sequence_length * plan.table.model.vocab};
    }
  }
  return {};
}

Bytes activation_peak(const SystemPlan& plan, std::size_t stage) {
  const Stage& part = plan.stages[stage];
  const auto later = static_cast<std::int64_t>(plan.stages.size() - stage);
  const std::int64_t on_the_way = plan.strategy.system == System::harmony
                                      ? plan.micro_batches()
                                      : std::min(later, plan.micro_batches());
  Bytes kept, working;
  for (std::size_t k = part.first_layer; k < part.end_layer; ++k) {
    kept += kept_bytes(plan, k);
    working = std::max(working, working_bytes(plan, k));
  }
  return kept * on_the_way + working;
}

Bytes offloaded_activations(const SystemPlan& plan) {
  if (plan.strategy.activations == Place::gpu) return {};
  return Bytes{BlockBytes(plan).stream()} * plan.workload.model.layers * plan.micro_batches();
}

}  // namespace offstage::scheduler::systems
