#include <string>

#include <fmt/format.h>

#include "workloads/hf_families.h"

// BERT and T5, which offstage counts but does not plan: the sub-model-major step is defined for a
// chain of decoder blocks. Defaults are those of transformers' configuration classes.
namespace offstage::workloads {

void read_bert(const HfKeys& keys, Model& model) {
  model.layers = keys.size({"num_hidden_layers"}, kMaxLayers);
  model.hidden = keys.size({"hidden_size"}, kMaxHidden);
  model.heads = keys.size({"num_attention_heads"}, kMaxHeads);
  model.kv_heads = model.heads;
  model.vocab = keys.size({"vocab_size"}, kMaxVocab);
  model.ffn = keys.size({"intermediate_size"}, kMaxFfn);
  model.max_positions = keys.size({"max_position_embeddings"}, kMaxPositions);
  model.position_rows = model.max_positions;
  model.token_types = keys.size({"type_vocab_size"}, kMaxPositions);
  model.norm_epsilon = keys.number_or({"layer_norm_eps"}, 1e-12, 0.0, 1.0);
  model.initializer_range = keys.number_or({"initializer_range"}, 0.02, 0.0, 10.0);
  model.activation = keys.activation({"hidden_act"}, Activation::gelu);
  model.embedding_norm = true;
  model.final_norm = false;
  model.causal = false;
  if (const auto positions = keys.find({"position_embedding_type"})) {
    positions->choice({"absolute"});
  }
}

void read_t5(const HfKeys& keys, Model& model) {
  model.layers = keys.size({"num_layers"}, kMaxLayers);
  model.decoder_layers = keys.find_size({"num_decoder_layers"}, kMaxLayers).value_or(model.layers);
  model.hidden = keys.size({"d_model"}, kMaxHidden);
  model.heads = keys.size({"num_heads"}, kMaxHeads);
  model.kv_heads = model.heads;
  // heads x d_kv need not be d_model: 16384 against 1024 in t5-11b.
  model.head_dim = keys.size({"d_kv"}, kMaxHidden);
  model.ffn = keys.size({"d_ff"}, kMaxFfn);
  model.vocab = keys.size({"vocab_size"}, kMaxVocab);
  model.position_rows =
      keys.find_size({"relative_attention_num_buckets"}, kMaxPositions).value_or(32);
  model.positions = Positions::relative_buckets;
  model.norm = Norm::rms_norm;
  model.norm_bias = false;
  model.norm_epsilon = keys.number_or({"layer_norm_epsilon"}, 1e-6, 0.0, 1.0);
  model.qkv_bias = false;
  model.attention_out_bias = false;
  model.ffn_bias = false;
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", true);
  model.activation = Activation::relu;
  if (const auto projection = keys.find({"feed_forward_proj"})) {
    const std::string name =
        projection->choice({"relu", "gelu", "gated-relu", "gated-gelu", "gated-silu"});
    model.gated = name.starts_with("gated-");
    if (name.ends_with("gelu")) {
      model.activation = Activation::gelu_tanh;
    } else if (name.ends_with("silu")) {
      model.activation = Activation::silu;
    }
  }
}

}  // namespace offstage::workloads
