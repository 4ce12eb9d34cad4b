#include "workloads/hf_config.h"

#include <string>

#include <catch2/catch.hpp>

#include "platform/document.h"
#include "workloads/layer_table.h"

namespace offstage::workloads {
namespace {

using platform::Document;

const std::string kConfigs = "workloads/data/hf_configs/";

Model load(const std::string& name) {
  return read_hf_config(Document::load(kConfigs + name + ".json"));
}

Model read(const std::string& json) {
  return read_hf_config(Document::parse("m.json", json, true));
}

TEST_CASE("every config of the table has the parameters its authors count", "[workloads][unit]") {
  const Document table = Document::load("workloads/data/parameters.yaml");
  std::size_t read = 0;
  for (const auto& entry : table.root().at("models").items()) {
    const std::string name = entry.at("name").text();
    CAPTURE(name);
    const Model model = load(name);
    CHECK(count_parameters(model) == entry.at("parameters").integer(1, std::int64_t{1} << 50));
    CHECK(model.name == name);
    ++read;
  }
  CHECK(read == 49);
}

TEST_CASE("GPT-2 has tied embeddings and a feed-forward of four times its width without saying so",
          "[workloads][unit]") {
  const Model model = load("gpt2");
  CHECK(model.family == Family::gpt2);
  CHECK(model.tied_embeddings);
  CHECK(model.ffn == 3072);
  CHECK(model.head_dim == 64);
  CHECK(model.position_rows == 1024);
  CHECK(model.activation == Activation::gelu_tanh);
}

TEST_CASE("a Llama without a number of key-value heads has one for every head",
          "[workloads][unit]") {
  CHECK(load("llama-7b").kv_heads == 32);
  CHECK(load("llama-2-70b").kv_heads == 8);
  const Model small = load("llama-3.2-1b");
  CHECK(small.tied_embeddings);
  CHECK(small.rope_theta == Approx(500000.0));
  CHECK(small.norm == Norm::rms_norm);
}

TEST_CASE("OPT keeps two more position rows than positions, and opt-350m projects its words",
          "[workloads][unit]") {
  const Model model = load("opt-350m");
  CHECK(model.max_positions == 2048);
  CHECK(model.position_rows == 2050);
  CHECK(model.embedding_dim == 512);
  CHECK_FALSE(model.final_norm);
}

TEST_CASE("the new Falcon decoder ignores multi_query, the old one obeys it", "[workloads][unit]") {
  CHECK(load("falcon-40b").kv_heads == 8);
  CHECK(load("falcon-40b-refinedweb").kv_heads == 8);
  const Model old = load("falcon-7b");
  CHECK(old.kv_heads == 1);
  CHECK(old.norms_per_block == 1);
}

TEST_CASE(
    "Gemma ties its embeddings by default, and Gemma-2's heads are wider than its hidden size",
    "[workloads][unit]") {
  CHECK(load("gemma-2b").tied_embeddings);
  const Model model = load("gemma-2-9b");
  CHECK(model.heads * model.head_dim == 4096);
  CHECK(model.hidden == 3584);
  CHECK(model.norms_per_block == 4);
}

TEST_CASE("DeepSeek-V2 has one dense layer and latents in place of head sizes",
          "[workloads][unit]") {
  const Model model = load("deepseek-v2-lite");
  REQUIRE(model.experts.has_value());
  CHECK(model.experts->first_dense_layers == 1);
  CHECK(model.experts->shared_ffn == 2816);  // two shared experts of 1408
  REQUIRE(model.latent.has_value());
  CHECK(model.latent->kv_rank == 512);
  CHECK_FALSE(model.latent->q_rank.has_value());
  CHECK(model.head_dim == 192);
}

TEST_CASE("stretched rotations and sliding windows are noticed where they are in use",
          "[workloads][unit]") {
  CHECK(load("llama-3.1-70b").rope_scaled);
  CHECK(load("deepseek-v2-lite").rope_scaled);
  CHECK_FALSE(load("llama-2-7b").rope_scaled);  // the key is there, but null
  CHECK(load("mistral-7b").sliding_window == 4096);
  CHECK(load("mixtral-8x7b").sliding_window == 0);
  CHECK(load("qwen2-7b").sliding_window == 0);  // set, but use_sliding_window is false
}

TEST_CASE("the rotary base is read from transformers 5's rope_parameters too",
          "[workloads][unit]") {
  const std::string sizes = R"({"model_type": "llama", "vocab_size": 8, "hidden_size": 8,
    "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, )";
  const Model plain =
      read(sizes + R"("rope_parameters": {"rope_theta": 5000.0, "rope_type": "default"}})");
  CHECK(plain.rope_theta == 5000.0);
  CHECK_FALSE(plain.rope_scaled);
  CHECK(read(sizes + R"("rope_parameters": {"rope_type": "llama3", "factor": 8.0}})").rope_scaled);
  CHECK(read(sizes + R"("rope_theta": 7000.0})").rope_theta == 7000.0);
}

TEST_CASE("GPT-2's own ways to scale attention are noticed", "[workloads][unit]") {
  CHECK(load("gpt2").plain_attention_scale);
  CHECK_FALSE(read(R"({"model_type": "gpt2", "vocab_size": 8, "n_positions": 8, "n_embd": 8,
    "n_layer": 1, "n_head": 2, "scale_attn_by_inverse_layer_idx": true})")
                  .plain_attention_scale);
}

TEST_CASE("a model is saved under names that transformers knows", "[workloads][unit]") {
  CHECK(saved_kind(load("gpt2")).model_type == "gpt2");
  CHECK(saved_kind(load("qwen2-7b")).model_type == "qwen2");
  CHECK(saved_kind(load("mistral-7b")).architecture == "MistralForCausalLM");
  Model first_llama = load("llama-2-7b");
  first_llama.architecture = "LLaMAForCausalLM";  // of the first revision's config.json
  CHECK(saved_kind(first_llama).architecture == "LlamaForCausalLM");
  CHECK(saved_kind(first_llama).model_type == "llama");
}

TEST_CASE("BERT and T5 are counted but not planned", "[workloads][unit]") {
  CHECK_FALSE(plannable(load("bert-large-uncased")));
  CHECK_FALSE(plannable(load("t5-11b")));
  CHECK(plannable(load("gpt2")));
  CHECK(load("t5-11b").decoder_layers == 24);
}

TEST_CASE("the published MPT-7B has ALiBi and no biases", "[workloads][unit]") {
  // 6,649,286,656: mosaicml/mpt-7b's model card and checkpoint.
  const Model model = read(R"({"architectures": ["MPTForCausalLM"], "model_type": "mpt",
    "attn_config": {"alibi": true, "attn_type": "multihead_attention"}, "d_model": 4096,
    "expansion_ratio": 4, "max_seq_len": 2048, "n_heads": 32, "n_layers": 32, "no_bias": true,
    "vocab_size": 50432})");
  CHECK(count_parameters(model) == 6649286656);
  CHECK(model.positions == Positions::alibi);
}

TEST_CASE("a model type stands in for missing architectures", "[workloads][unit]") {
  const Model model = read(R"({"model_type": "phi-msft", "n_layer": 2, "n_embd": 64, "n_head": 4,
    "vocab_size": 100, "rotary_dim": 8})");
  CHECK(model.architecture == "PhiForCausalLM");
  CHECK(model.rotary_dim == 8);
  CHECK(model.head_bias);
}

TEST_CASE("the spelling of early Llama conversions is read", "[workloads][unit]") {
  const Model model = read(R"({"architectures": ["LLaMAForCausalLM"], "hidden_size": 64,
    "intermediate_size": 172, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
    "max_sequence_length": 2048})");
  CHECK(model.family == Family::llama);
  CHECK(model.max_positions == 2048);
}

TEST_CASE("keys nobody needs are tolerated in any shape", "[workloads][unit]") {
  const Model model = read(R"({"architectures": ["GPT2LMHeadModel"], "n_layer": 2, "n_embd": 8,
    "n_head": 2, "vocab_size": 10, "n_positions": 4, "eos_token_id": [1, 2],
    "task_specific_params": {"text-generation": {"do_sample": true}}, "n_inner": null})");
  CHECK(model.ffn == 32);
}

TEST_CASE("a YAML map of the same keys reads the same model", "[workloads][unit]") {
  const auto document = Document::parse("run.yaml",
                                        "model:\n"
                                        "  architectures: [GPT2LMHeadModel]\n"
                                        "  n_layer: 2\n"
                                        "  n_embd: 8\n"
                                        "  n_head: 2\n"
                                        "  vocab_size: 10\n"
                                        "  n_positions: 4\n",
                                        false);
  const Model model = read_hf_config(document.root().at("model"), "mine");
  CHECK(model.name == "mine");
  // Words 10 x 8, positions 4 x 8, two blocks of 12 x 64 + 13 x 8, final norm 16.
  CHECK(count_parameters(model) == 80 + 32 + 2 * (768 + 104) + 16);
}

}  // namespace
}  // namespace offstage::workloads
