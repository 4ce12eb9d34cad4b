#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// A transformer as offstage understands it: one normalised shape, whatever the keys of the
// config.json it came from. hf_config.h reads it; layer_table.h counts what it costs.
namespace offstage::workloads {

enum class Family {
  gpt2,
  llama,
  opt,
  gpt_neox,
  gptj,
  bloom,
  falcon,
  mpt,
  mixtral,
  qwen2_moe,
  gemma,
  gemma2,
  deepseek_v2,
  phi,
  bert,
  t5,
};

enum class Norm { layer_norm, rms_norm };
enum class Positions { learned, rotary, alibi, relative_buckets };
enum class Activation { gelu, gelu_tanh, relu, silu };

// A feed-forward layer chosen by a router; the dense sizes stay in Model::ffn.
struct Experts {
  std::int64_t count = 0;       // stored, and in the optimizer
  std::int64_t per_token = 0;   // computed
  std::int64_t ffn = 0;         // of one expert
  std::int64_t shared_ffn = 0;  // of the expert every token visits; 0: none
  bool shared_gate = false;     // a hidden x 1 gate in front of the shared expert
  std::int64_t first_dense_layers =
      0;  // layers at the start with a dense feed-forward of Model::ffn
};

// Attention through low-rank latents (DeepSeek-V2).
struct LatentAttention {
  std::int64_t kv_rank = 0;
  std::optional<std::int64_t> q_rank;
  std::int64_t rope_head_dim = 0, nope_head_dim = 0, value_head_dim = 0;
};

struct Model {
  std::string name;          // the file's stem or the given name
  std::string architecture;  // as the file says, "LlamaForCausalLM"
  Family family = Family::gpt2;

  std::int64_t layers = 0;  // decoder blocks (encoder blocks for BERT)
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  // heads x head_dim need not be hidden (Gemma-2, T5)
  std::int64_t ffn = 0;
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;  // rows asked for; no limit on the sequence for rotary and ALiBi
  std::int64_t position_rows = 0;  // of a learned table (OPT has two more); 0: no table
  std::int64_t embedding_dim = 0;  // word vectors; differs from hidden only in opt-350m
  std::int64_t token_types = 0;    // BERT

  Norm norm = Norm::layer_norm;
  bool norm_bias = true;
  double norm_epsilon = 1e-5;
  int norms_per_block = 2;  // 1: GPT-J, Phi, Falcon-7B; 4: Gemma-2
  bool final_norm = true;
  bool embedding_norm = false;     // BLOOM, BERT
  bool parallel_residual = false;  // attention and feed-forward read the same input

  Positions positions = Positions::learned;
  std::int64_t rotary_dim = 0;
  double rope_theta = 10000.0;
  bool rope_scaled = false;         // stretched frequencies (Llama 3.1, YaRN); costs are the same
  std::int64_t sliding_window = 0;  // tokens a token attends to; 0: all. Costs are those of all
  // Scores are divided by the square root of head_dim, and by nothing else; costs are the same.
  bool plain_attention_scale = true;
  Activation activation = Activation::gelu_tanh;
  bool gated = false;  // three feed-forward matrices, not two
  bool qkv_bias = true, attention_out_bias = true, ffn_bias = true, head_bias = false;
  bool tied_embeddings = true;

  std::optional<Experts> experts;
  std::optional<LatentAttention> latent;

  bool causal = true;
  std::int64_t decoder_layers = 0;  // T5: blocks of the decoder beside `layers` encoder blocks
  double initializer_range = 0.02;  // standard deviation of initial weights

  // More than 1: these are the sizes of one GPU's slice of so many (tensor_slice.h).
  std::int64_t tensor_ways = 1;
};

// Whether the sub-model-major step can be planned: decoder-only models.
inline bool plannable(const Model& model) {
  return model.family != Family::bert && model.family != Family::t5;
}

}  // namespace offstage::workloads
