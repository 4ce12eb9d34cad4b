#include "workloads/parameters.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::workloads {
namespace {

std::int64_t query_size(const Model& model) { return model.heads * model.head_dim; }
std::int64_t key_size(const Model& model) { return model.kv_heads * model.head_dim; }
std::int64_t fused_size(const Model& model) { return query_size(model) + 2 * key_size(model); }

void gpt2_block(const Model& model, TensorList& list) {
  const std::int64_t hidden = model.hidden;
  list.norm("ln_1", hidden, true);
  list.transposed_linear("attn.c_attn", fused_size(model), hidden, true);
  list.transposed_linear("attn.c_proj", hidden, query_size(model), true);
  list.norm("ln_2", hidden, true);
  list.transposed_linear("mlp.c_fc", model.ffn, hidden, true);
  list.transposed_linear("mlp.c_proj", hidden, model.ffn, true);
}

void opt_block(const Model& model, TensorList& list) {
  const std::int64_t hidden = model.hidden;
  list.norm("self_attn_layer_norm", hidden, true);
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    list.linear(fmt::format("self_attn.{}", name), query_size(model), hidden, model.qkv_bias);
  }
  list.linear("self_attn.out_proj", hidden, query_size(model), model.attention_out_bias);
  list.norm("final_layer_norm", hidden, true);
  list.linear("fc1", model.ffn, hidden, model.ffn_bias);
  list.linear("fc2", hidden, model.ffn, model.ffn_bias);
}

void gpt_neox_block(const Model& model, TensorList& list) {
  list.norm("input_layernorm", model.hidden, true);
  list.linear("attention.query_key_value", fused_size(model), model.hidden, model.qkv_bias);
  list.linear("attention.dense", model.hidden, query_size(model), model.attention_out_bias);
  list.norm("post_attention_layernorm", model.hidden, true);
  list.linear("mlp.dense_h_to_4h", model.ffn, model.hidden, true);
  list.linear("mlp.dense_4h_to_h", model.hidden, model.ffn, true);
}

void gptj_block(const Model& model, TensorList& list) {
  list.norm("ln_1", model.hidden, true);
  for (const char* name : {"q_proj", "k_proj", "v_proj"}) {
    list.linear(fmt::format("attn.{}", name), query_size(model), model.hidden, false);
  }
  list.linear("attn.out_proj", model.hidden, query_size(model), false);
  list.linear("mlp.fc_in", model.ffn, model.hidden, true);
  list.linear("mlp.fc_out", model.hidden, model.ffn, true);
}

void phi_block(const Model& model, TensorList& list) {
  list.norm("input_layernorm", model.hidden, true);
  list.linear("self_attn.q_proj", query_size(model), model.hidden, true);
  list.linear("self_attn.k_proj", key_size(model), model.hidden, true);
  list.linear("self_attn.v_proj", key_size(model), model.hidden, true);
  list.linear("self_attn.dense", model.hidden, query_size(model), true);
  list.linear("mlp.fc1", model.ffn, model.hidden, true);
  list.linear("mlp.fc2", model.hidden, model.ffn, true);
}

void bloom_block(const Model& model, TensorList& list) {
  list.norm("input_layernorm", model.hidden, true);
  list.linear("self_attention.query_key_value", fused_size(model), model.hidden, true);
  list.linear("self_attention.dense", model.hidden, query_size(model), true);
  list.norm("post_attention_layernorm", model.hidden, true);
  list.linear("mlp.dense_h_to_4h", model.ffn, model.hidden, true);
  list.linear("mlp.dense_4h_to_h", model.hidden, model.ffn, true);
}

void falcon_block(const Model& model, TensorList& list) {
  if (model.parallel_residual && model.norms_per_block == 2) {
    list.norm("ln_attn", model.hidden, true);
    list.norm("ln_mlp", model.hidden, true);
  } else {
    list.norm("input_layernorm", model.hidden, true);
  }
  list.linear("self_attention.query_key_value", fused_size(model), model.hidden, model.qkv_bias);
  list.linear("self_attention.dense", model.hidden, query_size(model), model.attention_out_bias);
  if (!model.parallel_residual) {
    list.norm("post_attention_layernorm", model.hidden, true);
  }
  list.linear("mlp.dense_h_to_4h", model.ffn, model.hidden, model.ffn_bias);
  list.linear("mlp.dense_4h_to_h", model.hidden, model.ffn, model.ffn_bias);
}

void mpt_block(const Model& model, TensorList& list) {
  list.norm("norm_1", model.hidden, model.norm_bias);
  list.linear("attn.Wqkv", fused_size(model), model.hidden, model.qkv_bias);
  list.linear("attn.out_proj", model.hidden, query_size(model), model.attention_out_bias);
  list.norm("norm_2", model.hidden, model.norm_bias);
  list.linear("ffn.up_proj", model.ffn, model.hidden, model.ffn_bias);
  list.linear("ffn.down_proj", model.hidden, model.ffn, model.ffn_bias);
}

void latent_attention(const Model& model, TensorList& list) {
  const LatentAttention& latent = *model.latent;
  const std::int64_t hidden = model.hidden;
  if (latent.q_rank) {
    list.linear("self_attn.q_a_proj", *latent.q_rank, hidden, false);
    list.norm("self_attn.q_a_layernorm", *latent.q_rank, false);
    list.linear("self_attn.q_b_proj", query_size(model), *latent.q_rank, false);
  } else {
    list.linear("self_attn.q_proj", query_size(model), hidden, false);
  }
  list.linear("self_attn.kv_a_proj_with_mqa", latent.kv_rank + latent.rope_head_dim, hidden, false);
  list.norm("self_attn.kv_a_layernorm", latent.kv_rank, false);
  list.linear("self_attn.kv_b_proj", model.heads * (latent.nope_head_dim + latent.value_head_dim),
              latent.kv_rank, false);
  list.linear("self_attn.o_proj", hidden, model.heads * latent.value_head_dim, false);
}

void llama_attention(const Model& model, TensorList& list) {
  list.linear("self_attn.q_proj", query_size(model), model.hidden, model.qkv_bias);
  list.linear("self_attn.k_proj", key_size(model), model.hidden, model.qkv_bias);
  list.linear("self_attn.v_proj", key_size(model), model.hidden, model.qkv_bias);
  list.linear("self_attn.o_proj", model.hidden, query_size(model), model.attention_out_bias);
}

void gated_ffn(const std::string& prefix, const Model& model, std::int64_t ffn, TensorList& list) {
  list.linear(prefix + ".gate_proj", ffn, model.hidden, model.ffn_bias);
  list.linear(prefix + ".up_proj", ffn, model.hidden, model.ffn_bias);
  list.linear(prefix + ".down_proj", model.hidden, ffn, model.ffn_bias);
}

void mixtral_experts(const Model& model, TensorList& list) {
  const Experts& experts = *model.experts;
  list.linear("block_sparse_moe.gate", experts.count, model.hidden, false);
  for (std::int64_t e = 0; e < experts.count; ++e) {
    const std::string prefix = fmt::format("block_sparse_moe.experts.{}", e);
    list.linear(prefix + ".w1", experts.ffn, model.hidden, false);
    list.linear(prefix + ".w3", experts.ffn, model.hidden, false);
    list.linear(prefix + ".w2", model.hidden, experts.ffn, false);
  }
}

void routed_experts(const Model& model, TensorList& list) {
  const Experts& experts = *model.experts;
  list.linear("mlp.gate", experts.count, model.hidden, false);
  for (std::int64_t e = 0; e < experts.count; ++e) {
    gated_ffn(fmt::format("mlp.experts.{}", e), model, experts.ffn, list);
  }
  if (experts.shared_ffn > 0) {
    const bool qwen = model.family == Family::qwen2_moe;
    gated_ffn(qwen ? "mlp.shared_expert" : "mlp.shared_experts", model, experts.shared_ffn, list);
  }
  if (experts.shared_gate) {
    list.linear("mlp.shared_expert_gate", 1, model.hidden, false);
  }
}

void llama_block(const Model& model, BlockKind kind, TensorList& list) {
  list.norm("input_layernorm", model.hidden, false);
  if (model.latent) {
    latent_attention(model, list);
  } else {
    llama_attention(model, list);
  }
  list.norm("post_attention_layernorm", model.hidden, false);
  if (model.norms_per_block == 4) {
    list.norm("pre_feedforward_layernorm", model.hidden, false);
  }
  if (kind == BlockKind::dense) {
    gated_ffn("mlp", model, model.ffn, list);
  } else if (model.family == Family::mixtral) {
    mixtral_experts(model, list);
  } else {
    routed_experts(model, list);
  }
  if (model.norms_per_block == 4) {
    list.norm("post_feedforward_layernorm", model.hidden, false);
  }
}

struct EdgeNames {
  const char* words;
  const char* positions;
  const char* final_norm;
  const char* output;
};

EdgeNames edge_names(Family family) {
  switch (family) {
    case Family::gpt2:
    case Family::gptj:
      return {"wte", "wpe", "ln_f", "lm_head"};
    case Family::mpt:
      return {"wte", "wpe", "norm_f", "lm_head"};
    case Family::opt:
      return {"embed_tokens", "embed_positions", "final_layer_norm", "lm_head"};
    case Family::gpt_neox:
      return {"embed_in", "", "final_layer_norm", "embed_out"};
    case Family::bloom:
    case Family::falcon:
      return {"word_embeddings", "", "ln_f", "lm_head"};
    case Family::phi:
      return {"embed_tokens", "", "final_layernorm", "lm_head"};
    default:
      return {"embed_tokens", "", "norm", "lm_head"};
  }
}

}  // namespace

void TensorList::add(std::string name, std::vector<std::int64_t> shape) {
  tensors_.push_back({std::move(name), std::move(shape)});
}

void TensorList::linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias) {
  add(name + ".weight", {out, in});
  if (bias) {
    add(name + ".bias", {out});
  }
}

void TensorList::transposed_linear(const std::string& name, std::int64_t out, std::int64_t in,
                                   bool bias) {
  add(name + ".weight", {in, out});
  if (bias) {
    add(name + ".bias", {out});
  }
}

void TensorList::norm(const std::string& name, std::int64_t size, bool bias) {
  add(name + ".weight", {size});
  if (bias) {
    add(name + ".bias", {size});
  }
}

std::int64_t ParameterTensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) {
    product *= size;
  }
  return product;
}

std::int64_t total_elements(const std::vector<ParameterTensor>& tensors) {
  std::int64_t sum = 0;
  for (const ParameterTensor& tensor : tensors) {
    sum += tensor.elements();
  }
  return sum;
}

std::int64_t active_elements(const Model& model, BlockKind kind,
                             const std::vector<ParameterTensor>& tensors) {
  const std::int64_t total = total_elements(tensors);
  if (kind == BlockKind::dense) {
    return total;
  }
  const Experts& experts = *model.experts;
  return total - (experts.count - experts.per_token) * 3 * model.hidden * experts.ffn;
}

std::int64_t block_count(const Model& model, BlockKind kind) {
  const std::int64_t dense = model.experts ? model.experts->first_dense_layers : model.layers;
  return kind == BlockKind::dense ? dense : model.layers - dense;
}

std::vector<ParameterTensor> embedding_parameters(const Model& model) {
  const EdgeNames names = edge_names(model.family);
  TensorList list;
  list.add(fmt::format("{}.weight", names.words), {model.vocab, model.embedding_dim});
  if (model.embedding_dim != model.hidden) {
    list.linear("project_in", model.hidden, model.embedding_dim, false);
  }
  if (model.positions == Positions::learned) {
    list.add(fmt::format("{}.weight", names.positions), {model.position_rows, model.hidden});
  }
  if (model.embedding_norm) {
    list.norm("word_embeddings_layernorm", model.hidden, model.norm_bias);
  }
  return list.take();
}

std::vector<ParameterTensor> block_parameters(const Model& model, BlockKind kind) {
  TensorList list;
  switch (model.family) {
    case Family::gpt2:
      gpt2_block(model, list);
      break;
    case Family::opt:
      opt_block(model, list);
      break;
    case Family::gpt_neox:
      gpt_neox_block(model, list);
      break;
    case Family::gptj:
      gptj_block(model, list);
      break;
    case Family::phi:
      phi_block(model, list);
      break;
    case Family::bloom:
      bloom_block(model, list);
      break;
    case Family::falcon:
      falcon_block(model, list);
      break;
    case Family::mpt:
      mpt_block(model, list);
      break;
    case Family::llama:
    case Family::gemma:
    case Family::gemma2:
    case Family::mixtral:
    case Family::qwen2_moe:
    case Family::deepseek_v2:
      llama_block(model, kind, list);
      break;
    case Family::bert:
    case Family::t5:
      OFFSTAGE_CHECK(false, "encoder models have no planned blocks: " + model.name);
  }
  return list.take();
}

std::vector<ParameterTensor> head_parameters(const Model& model) {
  const EdgeNames names = edge_names(model.family);
  TensorList list;
  if (model.final_norm) {
    list.norm(names.final_norm, model.hidden, model.norm_bias);
  }
  if (model.embedding_dim != model.hidden) {
    list.linear("project_out", model.embedding_dim, model.hidden, false);
  }
  if (!model.tied_embeddings) {
    list.linear(names.output, model.vocab, model.embedding_dim, false);
  }
  if (model.head_bias) {
    list.add(fmt::format("{}.bias", names.output), {model.vocab});
  }
  return list.take();
}

}  // namespace offstage::workloads
