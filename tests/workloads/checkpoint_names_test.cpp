#include "workloads/checkpoint_names.h"

#include <catch2/catch.hpp>

#include "platform/document.h"
#include "platform/error.h"
#include "workloads/hf_config.h"

namespace offstage::workloads {
namespace {

LayerTable table_of(const std::string& name) {
  const auto model =
      read_hf_config(platform::Document::load("workloads/data/hf_configs/" + name + ".json"));
  return make_layer_table(model, {.micro_batch = 1, .sequence_length = 16});
}

TEST_CASE("GPT-2's tensors have the names of its published checkpoint", "[workloads][unit]") {
  const auto table = table_of("gpt2");
  // Source: the list of tensors of openai-community/gpt2, model.safetensors, which leaves out the
  // optional prefix.
  CHECK(checkpoint_names(table, 0) ==
        std::vector<std::string>{"transformer.wte.weight", "transformer.wpe.weight"});
  CHECK(checkpoint_names(table, 12).front() == "transformer.h.11.ln_1.weight");
  CHECK(checkpoint_names(table, 13) ==
        std::vector<std::string>{"transformer.ln_f.weight", "transformer.ln_f.bias"});
  CHECK(optional_prefix(table.model) == "transformer.");
}

TEST_CASE("Llama's head stands outside the model", "[workloads][unit]") {
  const auto table = table_of("llama-2-7b");
  CHECK(checkpoint_names(table, 0) == std::vector<std::string>{"model.embed_tokens.weight"});
  CHECK(checkpoint_names(table, 1).at(1) == "model.layers.0.self_attn.q_proj.weight");
  CHECK(checkpoint_names(table, 33) ==
        std::vector<std::string>{"model.norm.weight", "lm_head.weight"});
}

TEST_CASE("a family without known names is refused", "[workloads][unit]") {
  CHECK_THROWS_WITH(checkpoint_names(table_of("falcon-7b"), 0), Catch::Contains("falcon"));
}

}  // namespace
}  // namespace offstage::workloads
