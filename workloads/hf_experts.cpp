#include <fmt/format.h>

#include "workloads/hf_families.h"

// Mixtures of experts on Llama's shape: Mixtral, Qwen2-MoE, DeepSeek-V2. Defaults are those of
// transformers' configuration classes.
namespace offstage::workloads {
namespace {

// Every layer from the first sparse one on must be sparse: other patterns have no name in Experts.
void require_one(const HfKeys& keys, const char* key) {
  const auto step = keys.find_size({key}, kMaxLayers);
  if (step && *step != 1) {
    throw keys.error({key},
                     fmt::format("{} is not supported; only 1, experts in every layer, is", *step));
  }
}

}  // namespace

void read_mixtral(const HfKeys& keys, Model& model) {
  read_llama_shape(keys, model);
  model.ffn = keys.size({"intermediate_size"}, kMaxFfn);
  Experts experts;
  experts.count = keys.size({"num_local_experts"}, kMaxExperts);
  experts.per_token = keys.size({"num_experts_per_tok"}, kMaxExperts);
  experts.ffn = model.ffn;
  model.experts = experts;
}

void read_qwen2_moe(const HfKeys& keys, Model& model) {
  read_qwen2(keys, model);
  require_one(keys, "decoder_sparse_step");
  if (const auto dense = keys.find({"mlp_only_layers"}); dense && !dense->items().empty()) {
    throw dense->error("dense layers between sparse ones are not supported; it must be empty");
  }
  Experts experts;
  experts.count = keys.size({"num_experts"}, kMaxExperts);
  experts.per_token = keys.size({"num_experts_per_tok"}, kMaxExperts);
  experts.ffn = keys.size({"moe_intermediate_size"}, kMaxFfn);
  experts.shared_ffn = keys.size({"shared_expert_intermediate_size"}, kMaxFfn);
  experts.shared_gate = true;
  model.experts = experts;
}

void read_deepseek_v2(const HfKeys& keys, Model& model) {
  read_llama_shape(keys, model);
  model.ffn = keys.size({"intermediate_size"}, kMaxFfn);
  if (keys.flag_or("attention_bias", false)) {
    throw keys.error({"attention_bias"},
                     "biases in latent attention are not supported; set it to false");
  }

  LatentAttention latent;
  latent.kv_rank = keys.size({"kv_lora_rank"}, kMaxHidden);
  latent.q_rank = keys.find_size({"q_lora_rank"}, kMaxHidden);
  latent.rope_head_dim = keys.size({"qk_rope_head_dim"}, kMaxHidden);
  latent.nope_head_dim = keys.size({"qk_nope_head_dim"}, kMaxHidden);
  latent.value_head_dim = keys.size({"v_head_dim"}, kMaxHidden);
  model.latent = latent;
  model.head_dim = latent.rope_head_dim + latent.nope_head_dim;
  model.rotary_dim = latent.rope_head_dim;

  require_one(keys, "moe_layer_freq");
  Experts experts;
  experts.count = keys.size({"n_routed_experts"}, kMaxExperts);
  experts.per_token = keys.size({"num_experts_per_tok"}, kMaxExperts);
  experts.ffn = keys.size({"moe_intermediate_size"}, kMaxFfn);
  experts.shared_ffn = experts.ffn * keys.find_size({"n_shared_experts"}, kMaxExperts).value_or(0);
  if (const auto dense = keys.find({"first_k_dense_replace"})) {
    experts.first_dense_layers = dense->integer(0, model.layers);
  }
  model.experts = experts;
}

}  // namespace offstage::workloads
