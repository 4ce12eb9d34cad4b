#include <string>

#include <fmt/format.h>

#include "workloads/hf_families.h"

// BLOOM, Falcon and MPT: fused query-key-value projections, ALiBi or a choice of positions.
// Defaults are those of transformers' configuration classes and, for MPTForCausalLM, of
// llm-foundry's.
namespace offstage::workloads {

void read_bloom(const HfKeys& keys, Model& model) {
  model.layers = keys.size({"n_layer", "num_hidden_layers"}, kMaxLayers);
  model.hidden = keys.size({"n_embed", "hidden_size"}, kMaxHidden);
  model.heads = keys.size({"num_attention_heads", "n_head"}, kMaxHeads);
  model.kv_heads = model.heads;
  model.vocab = keys.size({"vocab_size"}, kMaxVocab);
  model.ffn = keys.find_size({"n_inner"}, kMaxFfn).value_or(4 * model.hidden);
  model.max_positions = keys.find_size({"seq_length"}, kMaxPositions).value_or(0);
  model.norm_epsilon = keys.number_or({"layer_norm_epsilon"}, 1e-5, 0.0, 1.0);
  model.initializer_range = keys.number_or({"initializer_range"}, 0.02, 0.0, 10.0);
  model.positions = Positions::alibi;
  model.embedding_norm = true;
  model.activation = Activation::gelu_tanh;
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", true);
}

void read_falcon(const HfKeys& keys, Model& model) {
  model.layers = keys.size({"num_hidden_layers", "n_layer"}, kMaxLayers);
  model.hidden = keys.size({"hidden_size"}, kMaxHidden);
  model.heads = keys.size({"num_attention_heads", "n_head"}, kMaxHeads);
  model.vocab = keys.size({"vocab_size"}, kMaxVocab);
  model.ffn = keys.find_size({"ffn_hidden_size"}, kMaxFfn).value_or(4 * model.hidden);
  model.max_positions = keys.find_size({"max_position_embeddings"}, kMaxPositions).value_or(0);
  model.norm_epsilon = keys.number_or({"layer_norm_epsilon"}, 1e-5, 0.0, 1.0);
  model.initializer_range = keys.number_or({"initializer_range"}, 0.02, 0.0, 10.0);

  // The first revisions (model_type RefinedWeb) have no key for the new decoder: there, a number of
  // key-value heads marks it. With the new decoder `multi_query` is ignored, as in FalconAttention.
  const auto kv_heads = keys.find_size({"num_kv_heads", "n_head_kv"}, kMaxHeads);
  const bool first_revision = keys.find({"n_head_kv"}).has_value();
  const bool new_decoder = keys.flag_or("new_decoder_architecture", first_revision);
  if (new_decoder) {
    model.kv_heads = kv_heads.value_or(model.heads);
  } else {
    model.kv_heads = keys.flag_or("multi_query", true) ? 1 : model.heads;
  }

  model.positions = keys.flag_or("alibi", false) ? Positions::alibi : Positions::rotary;
  if (model.positions == Positions::rotary) {
    model.rope_theta = keys.number_or({"rope_theta"}, 10000.0, 1.0, 1e12);
  }
  model.parallel_residual = new_decoder || keys.flag_or("parallel_attn", true);
  const std::int64_t norms =
      keys.find_size({"num_ln_in_parallel_attn"}, 2).value_or(new_decoder ? 2 : 1);
  model.norms_per_block = model.parallel_residual ? static_cast<int>(norms) : 2;
  model.activation = keys.activation({"activation"}, Activation::gelu);
  const bool bias = keys.flag_or("bias", false);
  model.qkv_bias = bias;
  model.attention_out_bias = bias;
  model.ffn_bias = bias;
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", true);
}

namespace {

void read_mpt_attention(const HfKeys& keys, Model& model) {
  // llm-foundry's models (MPTForCausalLM) have learned positions unless told otherwise;
  // transformers' own class (MptForCausalLM) has ALiBi and nothing else.
  const bool foundry = model.architecture != "MptForCausalLM";
  bool alibi = !foundry;
  bool rotary = false;
  model.kv_heads = model.heads;
  if (const auto attention = keys.find({"attn_config"})) {
    const HfKeys inner(*attention, model.architecture);
    alibi = inner.flag_or("alibi", alibi);
    rotary = inner.flag_or("rope", false);
    model.rope_theta = inner.number_or({"rope_theta"}, 10000.0, 1.0, 1e12);
    if (inner.flag_or("qk_ln", false)) {
      throw inner.error({"qk_ln"}, "norms on queries and keys are not supported; set it to false");
    }
    if (const auto type = inner.find({"attn_type"})) {
      const std::string name =
          type->choice({"multihead_attention", "multiquery_attention", "grouped_query_attention"});
      if (name == "multiquery_attention") {
        model.kv_heads = 1;
      } else if (name == "grouped_query_attention") {
        model.kv_heads = inner.size({"kv_n_heads"}, kMaxHeads);
      }
    }
  }
  if (alibi) {
    model.positions = Positions::alibi;
  } else if (rotary) {
    model.positions = Positions::rotary;
  } else if (foundry && keys.flag_or("learned_pos_emb", true)) {
    model.positions = Positions::learned;
    model.position_rows = model.max_positions;
  } else {
    throw keys.error({"attn_config", "learned_pos_emb"},
                     "the model has no positions of any kind; set attn_config.alibi to true");
  }
}

}  // namespace

void read_mpt(const HfKeys& keys, Model& model) {
  model.layers = keys.size({"n_layers"}, kMaxLayers);
  model.hidden = keys.size({"d_model"}, kMaxHidden);
  model.heads = keys.size({"n_heads"}, kMaxHeads);
  model.vocab = keys.size({"vocab_size"}, kMaxVocab);
  model.max_positions = keys.size({"max_seq_len"}, kMaxPositions);
  model.ffn = model.hidden * keys.find_size({"expansion_ratio"}, 16).value_or(4);
  model.activation = Activation::gelu;
  const bool bias = !keys.flag_or("no_bias", model.architecture == "MptForCausalLM");
  model.norm_bias = bias;
  model.qkv_bias = bias;
  model.attention_out_bias = bias;
  model.ffn_bias = bias;
  model.tied_embeddings = keys.flag_or("tie_word_embeddings", true);
  model.initializer_range = keys.number_or({"initializer_range"}, 0.02, 0.0, 10.0);
  read_mpt_attention(keys, model);
}

}  // namespace offstage::workloads
