#include <fmt/format.h>

#include "workloads/hf_families.h"

// Llama, Mistral, Qwen2 and Gemma: RMS norms, rotary positions, a gated feed-forward, grouped
// queries. Defaults are those of transformers' configuration classes.
namespace offstage::workloads {
namespace {

// rope_scaling {"rope_type": "llama3", "factor": 8.0, ...}; older files spell its key `type`.
// transformers 5 writes rope_parameters instead, with the base in it.
void read_rope(const HfKeys& keys, Model& model) {
  model.rope_theta = keys.number_or({"rope_theta"}, 10000.0, 1.0, 1e12);
  if (const auto scaling = keys.find({"rope_scaling"})) {
    const HfKeys inner(*scaling, model.architecture);
    const auto type = inner.find({"rope_type", "type"});
    model.rope_scaled = !type || type->text() != "default";
  }
  if (const auto parameters = keys.find({"rope_parameters"})) {
    const HfKeys inner(*parameters, model.architecture);
    model.rope_theta = inner.number_or({"rope_theta"}, model.rope_theta, 1.0, 1e12);
    const auto type = inner.find({"rope_type"});
    model.rope_scaled = type && type->text() != "default";
  }
}

}  // namespace

void read_llama_shape(const HfKeys& keys, Model& model) {
  model.layers = keys.size({"num_hidden_layers"}, kMaxLayers);
  model.hidden = keys.size({"hidden_size"}, kMaxHidden);
  model.heads = keys.size({"num_attention_heads"}, kMaxHeads);
  // Files older than grouped queries have no key for them.
  model.kv_heads = keys.find_size({"num_key_value_heads"}, kMaxHeads).value_or(model.heads);
  model.head_dim = keys.find_size({"head_dim"}, kMaxHidden).value_or(0);
  model.vocab = keys.size({"vocab_size"}, kMaxVocab);
  model.max_positions =
      keys.find_size({"max_position_embeddings", "max_sequence_length"}, kMaxPositions).value_or(0);
  model.norm = Norm::rms_norm;
  model.norm_bias = false;
  model.norm_epsilon = keys.number_or({"rms_norm_eps"}, 1e-6, 0.0, 1.0);
  model.initializer_range = keys.number_or({"initializer_range"}, 0.02, 0.0, 10.0);
  model.positions = Positions::rotary;
  read_rope(keys, model);
  model.sliding_window = keys.find_size({"sliding_window"}, kMaxPositions).value_or(0);
  model.activation = keys.activation({"hidden_act"}, Activation::silu);
  model.gated = true;
  model.qkv_bias = false;
  model.attention_out_bias = false;
  model.ffn_bias = false;
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", false);
}

void read_llama(const HfKeys& keys, Model& model) {
  read_llama_shape(keys, model);
  model.ffn = keys.size({"intermediate_size"}, kMaxFfn);
  const bool attention_bias = keys.flag_or("attention_bias", false);
  model.qkv_bias = attention_bias;
  model.attention_out_bias = attention_bias;
  model.ffn_bias = keys.flag_or("mlp_bias", false);
}

void read_qwen2(const HfKeys& keys, Model& model) {
  read_llama_shape(keys, model);
  model.ffn = keys.size({"intermediate_size"}, kMaxFfn);
  // Qwen2Attention has these biases and no key to turn them off.
  model.qkv_bias = true;
  if (!keys.flag_or("use_sliding_window", false)) {
    model.sliding_window = 0;
  }
}

void read_gemma(const HfKeys& keys, Model& model) {
  read_llama_shape(keys, model);
  model.ffn = keys.size({"intermediate_size"}, kMaxFfn);
  const bool attention_bias = keys.flag_or("attention_bias", false);
  model.qkv_bias = attention_bias;
  model.attention_out_bias = attention_bias;
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", true);
  // GemmaMLP computes the tanh form whatever `hidden_act` says.
  model.activation = Activation::gelu_tanh;
  model.norms_per_block = model.family == Family::gemma2 ? 4 : 2;
}

}  // namespace offstage::workloads
