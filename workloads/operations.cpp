#include "workloads/operations.h"

#include "workloads/logits_chunk.h"
#include "workloads/pass_builder.h"

namespace offstage::workloads {
namespace {

constexpr std::int64_t kLogitBytes = 4;  // softmax and loss are computed in f32
constexpr std::int64_t kIndexBytes = 8;  // token numbers and routing indices

// Families that store queries, keys and values as one matrix compute them with one product.
bool fused_qkv(Family family) {
  switch (family) {
    case Family::gpt2:
    case Family::gpt_neox:
    case Family::bloom:
    case Family::falcon:
    case Family::mpt:
      return true;
    default:
      return false;
  }
}

void latent_projections(const Model& model, PassBuilder& builder) {
  const LatentAttention& latent = *model.latent;
  const std::int64_t query = model.heads * model.head_dim;
  if (latent.q_rank) {
    builder.linear("q_a", *latent.q_rank, model.hidden, false);
    builder.norm("q_a_norm", *latent.q_rank);
    builder.linear("q_b", query, *latent.q_rank, false);
  } else {
    builder.linear("q", query, model.hidden, false);
  }
  builder.linear("kv_a", latent.kv_rank + latent.rope_head_dim, model.hidden, false);
  builder.norm("kv_a_norm", latent.kv_rank);
  builder.linear("kv_b", model.heads * (latent.nope_head_dim + latent.value_head_dim),
                 latent.kv_rank, false);
  // Every head's key repeats the one rotated part.
  builder.rotary((model.heads + 1) * latent.rope_head_dim);
  const std::int64_t keys = 2 * builder.element() * builder.tokens() * query;
  builder.memory("join_keys", keys, keys);
}

void plain_projections(const Model& model, PassBuilder& builder) {
  const std::int64_t query = model.heads * model.head_dim;
  const std::int64_t key = model.kv_heads * model.head_dim;
  const std::int64_t plane = builder.element() * builder.tokens() * model.hidden;
  if (fused_qkv(model.family)) {
    builder.linear("qkv", query + 2 * key, model.hidden, model.qkv_bias);
    const std::int64_t width = query + 2 * key;
    builder.f32_backward("qkv.join_gradients", 2 * builder.element() * builder.tokens() * width, 3);
  } else {
    builder.f32_backward("qkv.sum_gradients", 2 * 3 * plane, 2);
    builder.linear("q", query, model.hidden, model.qkv_bias);
    builder.linear("k", key, model.hidden, model.qkv_bias);
    builder.linear("v", key, model.hidden, model.qkv_bias);
  }
  if (model.positions == Positions::rotary) {
    builder.rotary((model.heads + model.kv_heads) * model.rotary_dim);
  }
  builder.repeat_keys();
}

void attention_part(const Model& model, PassBuilder& builder) {
  if (model.latent) {
    latent_projections(model, builder);
    builder.attention(model.head_dim, model.latent->value_head_dim);
    builder.linear("attention_out", model.hidden, model.heads * model.latent->value_head_dim,
                   false);
    return;
  }
  plain_projections(model, builder);
  builder.attention(model.head_dim, model.head_dim);
  builder.linear("attention_out", model.hidden, model.heads * model.head_dim,
                 model.attention_out_bias);
}

void dense_ffn(const Model& model, const std::string& prefix, std::int64_t ffn,
               PassBuilder& builder) {
  if (model.gated) {
    builder.f32_backward(prefix + "ffn.sum_gradients",
                         3 * builder.element() * builder.tokens() * model.hidden, 1);
    builder.linear(prefix + "gate", ffn, model.hidden, model.ffn_bias);
    builder.linear(prefix + "up", ffn, model.hidden, model.ffn_bias);
  } else {
    builder.linear(prefix + "fc_in", ffn, model.hidden, model.ffn_bias);
  }
  builder.activation(builder.tokens(), ffn);
  builder.linear(prefix + (model.gated ? "down" : "fc_out"), model.hidden, ffn, model.ffn_bias);
}

void expert_ffn(const Model& model, PassBuilder& builder) {
  const Experts& experts = *model.experts;
  const std::int64_t rows = builder.tokens() * experts.per_token;
  const std::int64_t row_bytes = builder.element() * model.hidden;
  builder.linear("router", experts.count, model.hidden, false);
  const std::int64_t scores = builder.element() * builder.tokens() * experts.count;
  const std::int64_t choices = kIndexBytes * rows;
  builder.memory("router_choice", 2 * scores + choices, 2 * scores + choices);
  builder.memory("gather_rows", 2 * rows * row_bytes, 2 * rows * row_bytes);
  builder.expert_linear("expert_gate", experts.ffn, model.hidden, rows);
  builder.expert_linear("expert_up", experts.ffn, model.hidden, rows);
  builder.activation(rows, experts.ffn);
  builder.expert_linear("expert_down", model.hidden, experts.ffn, rows);
  // Each token's results are weighted and summed.
  const std::int64_t combined = (rows + builder.tokens()) * row_bytes;
  builder.memory("combine_rows", combined, combined);
  if (experts.shared_ffn > 0) {
    dense_ffn(model, "shared_", experts.shared_ffn, builder);
    if (experts.shared_gate) {
      builder.linear("shared_expert_gate", 1, model.hidden, false);
    }
    builder.residual_add("shared_add");
  }
}

void ffn_part(const Model& model, BlockKind kind, PassBuilder& builder) {
  if (kind == BlockKind::experts) {
    expert_ffn(model, builder);
  } else {
    dense_ffn(model, "", model.ffn, builder);
  }
}

}  // namespace

Passes block_operations(const Model& model, const Batch& batch, BlockKind kind) {
  PassBuilder builder(model, batch);
  if (model.norm == Norm::layer_norm) {  // comes out of the norm's kernel in memory of its own
    builder.f32_backward("input_gradient.copy",
                         2 * builder.element() * builder.tokens() * model.hidden, 1);
  }
  builder.norm("attention_norm", model.hidden);
  if (model.parallel_residual && model.norms_per_block == 2) {
    builder.norm("ffn_norm", model.hidden);
  }
  attention_part(model, builder);
  if (model.norms_per_block == 4) {
    builder.norm("attention_out_norm", model.hidden);
  }
  builder.residual_add("attention_add");
  if (!model.parallel_residual) {
    builder.norm("ffn_norm", model.hidden);
  }
  ffn_part(model, kind, builder);
  if (model.norms_per_block == 4) {
    builder.norm("ffn_out_norm", model.hidden);
  }
  builder.residual_add("ffn_add");
  return builder.take();
}

Passes embedding_operations(const Model& model, const Batch& batch) {
  PassBuilder builder(model, batch);
  const std::int64_t indices = kIndexBytes * builder.tokens();
  const std::int64_t words = builder.element() * builder.tokens() * model.embedding_dim;
  const std::int64_t plane = builder.element() * builder.tokens() * model.hidden;
  constexpr std::int64_t kGradientBytes = 4;
  // Backward reads the gradient's rows and adds them to the table's in f32.
  builder.memory("word_embedding", indices + 2 * words,
                 indices + words + 2 * kGradientBytes * builder.tokens() * model.embedding_dim);
  if (model.embedding_dim != model.hidden) {
    builder.linear("project_in", model.hidden, model.embedding_dim, false);
  }
  if (model.positions == Positions::learned) {
    const std::int64_t table = batch.sequence_length * model.hidden;
    builder.memory("position_embedding", 2 * plane + builder.element() * table,
                   plane + 2 * kGradientBytes * table);
  }
  if (model.embedding_norm) {
    builder.norm("embedding_norm", model.hidden);
  }
  builder.dropout("embedding_dropout", model.hidden);
  return builder.take();
}

Passes head_operations(const Model& model, const Batch& batch) {
  PassBuilder builder(model, batch);
  if (model.final_norm) {
    builder.norm("final_norm", model.hidden);
  }
  if (model.embedding_dim != model.hidden) {
    builder.linear("project_out", model.embedding_dim, model.hidden, false);
  }
  const std::int64_t chunk = logits_chunk(model.vocab, builder.tokens());
  builder.chunked_linear("lm_head", {model.vocab, model.embedding_dim, model.head_bias}, chunk);
  const std::int64_t logits = builder.tokens() * model.vocab;
  if (batch.kernels.loss_bytes_per_logit > 0) {
    const std::int64_t bytes = batch.kernels.loss_bytes_per_logit * logits;
    builder.memory("cross_entropy", bytes / 2, bytes - bytes / 2);
  } else if (batch.precision == platform::Precision::bf16) {
    // One kernel from bf16 logits to f32 log-probabilities, one from those to the bf16 gradient.
    const std::int64_t bytes = logits * (builder.element() + kLogitBytes);
    builder.memory("cross_entropy", bytes, bytes);
  } else {
    // In place; in backward a plane of zeros, then two reads and a write.
    builder.memory("cross_entropy", 2 * kLogitBytes * logits, 4 * kLogitBytes * logits);
  }
  return builder.take();
}

}  // namespace offstage::workloads
