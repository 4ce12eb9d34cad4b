#include <cmath>

#include <fmt/format.h>

#include "workloads/hf_families.h"

// GPT-2 and the models that kept its keys or its shape: GPT-J, GPT-NeoX, OPT, Phi. Defaults are
// those of transformers' configuration classes (configuration_gpt2.py and so on).
namespace offstage::workloads {
namespace {

void read_gpt2_sizes(const HfKeys& keys, Model& model) {
  model.layers = keys.size({"n_layer", "num_hidden_layers"}, kMaxLayers);
  model.hidden = keys.size({"n_embd", "hidden_size"}, kMaxHidden);
  model.heads = keys.size({"n_head", "num_attention_heads"}, kMaxHeads);
  model.kv_heads = model.heads;
  model.vocab = keys.size({"vocab_size"}, kMaxVocab);
  model.ffn = keys.find_size({"n_inner", "intermediate_size"}, kMaxFfn).value_or(4 * model.hidden);
  model.norm_epsilon = keys.number_or({"layer_norm_epsilon", "layer_norm_eps"}, 1e-5, 0.0, 1.0);
  model.initializer_range = keys.number_or({"initializer_range"}, 0.02, 0.0, 10.0);
}

// The dimensions of a head that are rotated, given as a fraction of it.
std::int64_t rotary_part(const HfKeys& keys, HfKeys::Spellings spellings, double fallback,
                         const Model& model) {
  const double part = keys.number_or(spellings, fallback, 0.0, 1.0);
  const double head = static_cast<double>(model.hidden / model.heads);
  const auto dimensions = static_cast<std::int64_t>(std::floor(part * head));
  if (dimensions < 2) {
    throw keys.error(spellings,
                     fmt::format("{} of a head's {} dimensions is less than 2, the fewest that can "
                                 "be rotated",
                                 part, head));
  }
  return dimensions;
}

}  // namespace

void read_gpt2(const HfKeys& keys, Model& model) {
  read_gpt2_sizes(keys, model);
  model.max_positions = keys.size({"n_positions", "max_position_embeddings"}, kMaxPositions);
  model.position_rows = model.max_positions;
  model.positions = Positions::learned;
  model.activation = keys.activation({"activation_function", "hidden_act"}, Activation::gelu_tanh);
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", true);
  model.plain_attention_scale = keys.flag_or("scale_attn_weights", true) &&
                                !keys.flag_or("scale_attn_by_inverse_layer_idx", false);
  if (keys.flag_or("add_cross_attention", false)) {
    throw keys.error({"add_cross_attention"},
                     "cross-attention is not supported in GPT-2; set it to false");
  }
}

void read_gptj(const HfKeys& keys, Model& model) {
  read_gpt2_sizes(keys, model);
  model.max_positions =
      keys.find_size({"n_positions", "max_position_embeddings"}, kMaxPositions).value_or(0);
  model.positions = Positions::rotary;
  // Without the key all of a head is rotated: zero, until the size of a head is known.
  model.rotary_dim = keys.find_size({"rotary_dim"}, kMaxHidden).value_or(0);
  model.activation = keys.activation({"activation_function", "hidden_act"}, Activation::gelu_tanh);
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", false);
  model.norms_per_block = 1;
  model.parallel_residual = true;
  model.qkv_bias = false;
  model.attention_out_bias = false;
  model.head_bias = true;
}

void read_gpt_neox(const HfKeys& keys, Model& model) {
  model.layers = keys.size({"num_hidden_layers"}, kMaxLayers);
  model.hidden = keys.size({"hidden_size"}, kMaxHidden);
  model.heads = keys.size({"num_attention_heads"}, kMaxHeads);
  model.kv_heads = model.heads;
  model.vocab = keys.size({"vocab_size"}, kMaxVocab);
  model.ffn = keys.size({"intermediate_size"}, kMaxFfn);
  model.max_positions = keys.find_size({"max_position_embeddings"}, kMaxPositions).value_or(0);
  model.norm_epsilon = keys.number_or({"layer_norm_eps"}, 1e-5, 0.0, 1.0);
  model.initializer_range = keys.number_or({"initializer_range"}, 0.02, 0.0, 10.0);
  model.positions = Positions::rotary;
  model.rope_theta = keys.number_or({"rotary_emb_base", "rope_theta"}, 10000.0, 1.0, 1e12);
  model.rotary_dim = rotary_part(keys, {"rotary_pct", "partial_rotary_factor"}, 0.25, model);
  model.activation = keys.activation({"hidden_act"}, Activation::gelu);
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", false);
  model.parallel_residual = keys.flag_or("use_parallel_residual", true);
  const bool attention_bias = keys.flag_or("attention_bias", true);
  model.qkv_bias = attention_bias;
  model.attention_out_bias = attention_bias;
}

void read_opt(const HfKeys& keys, Model& model) {
  model.layers = keys.size({"num_hidden_layers"}, kMaxLayers);
  model.hidden = keys.size({"hidden_size"}, kMaxHidden);
  model.heads = keys.size({"num_attention_heads"}, kMaxHeads);
  model.kv_heads = model.heads;
  model.vocab = keys.size({"vocab_size"}, kMaxVocab);
  model.ffn = keys.size({"ffn_dim"}, kMaxFfn);
  model.max_positions = keys.size({"max_position_embeddings"}, kMaxPositions);
  // OPTLearnedPositionalEmbedding keeps two rows in front of the first position.
  model.position_rows = model.max_positions + 2;
  model.positions = Positions::learned;
  model.embedding_dim = keys.find_size({"word_embed_proj_dim"}, kMaxHidden).value_or(model.hidden);
  model.activation = keys.activation({"activation_function"}, Activation::relu);
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", true);
  model.initializer_range = keys.number_or({"init_std"}, 0.02, 0.0, 10.0);
  // The post-norm variant (opt-350m) has no norm after the last block.
  model.final_norm = keys.flag_or("do_layer_norm_before", true) &&
                     !keys.flag_or("_remove_final_layer_norm", false);
  const bool bias = keys.flag_or("enable_bias", true);
  model.qkv_bias = bias;
  model.attention_out_bias = bias;
  model.ffn_bias = bias;
  if (!keys.flag_or("layer_norm_elementwise_affine", true)) {
    throw keys.error({"layer_norm_elementwise_affine"},
                     "norms without weights are not supported; set it to true");
  }
}

void read_phi(const HfKeys& keys, Model& model) {
  read_gpt2_sizes(keys, model);
  model.kv_heads =
      keys.find_size({"n_head_kv", "num_key_value_heads"}, kMaxHeads).value_or(model.heads);
  model.max_positions =
      keys.find_size({"n_positions", "max_position_embeddings"}, kMaxPositions).value_or(0);
  model.positions = Positions::rotary;
  const auto rotary_dim = keys.find_size({"rotary_dim"}, kMaxHidden);
  model.rotary_dim =
      rotary_dim ? *rotary_dim : rotary_part(keys, {"partial_rotary_factor"}, 0.5, model);
  model.rope_theta = keys.number_or({"rope_theta"}, 10000.0, 1.0, 1e12);
  model.activation = keys.activation({"activation_function", "hidden_act"}, Activation::gelu_tanh);
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", false);
  model.norms_per_block = 1;
  model.parallel_residual = true;
  model.head_bias = true;
  if (keys.flag_or("qk_layernorm", false)) {
    throw keys.error({"qk_layernorm"},
                     "norms on queries and keys are not supported; set it to false");
  }
}

}  // namespace offstage::workloads
