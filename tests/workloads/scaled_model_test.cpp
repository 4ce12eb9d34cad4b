#include "workloads/scaled_model.h"

#include <string>
#include <utility>

#include <catch2/catch.hpp>

#include "platform/document.h"
#include "workloads/layer_table.h"
#include "workloads/model_library.h"

namespace offstage::workloads {
namespace {

Workload load(const std::string& name) {
  ModelConfig config = load_model("workloads/data/hf_configs/" + name + ".json", "");
  Workload workload;
  workload.model = std::move(config.model);
  workload.model_config = std::move(config.json);
  workload.sequence_length = 128;
  workload.global_batch = 8;
  return workload;
}

// Every family that can be planned.
const std::vector<std::string> kFamilies{
    "gpt2-xl",    "llama-2-70b",       "opt-13b",    "gpt-neox-20b", "gpt-j-6b",
    "bloom-7b1",  "falcon-40b",        "falcon-7b",  "mpt-bench-7b", "mixtral-8x7b",
    "qwen2-7b",   "qwen1.5-moe-a2.7b", "gemma-2-9b", "gemma-2b",     "deepseek-v2-lite",
    "mistral-7b", "phi-2-old-keys"};

TEST_CASE("one more layer adds exactly one block's parameters, in every family",
          "[workloads][unit]") {
  for (const std::string& name : kFamilies) {
    CAPTURE(name);
    const Workload base = load(name);
    const std::int64_t layers = base.model.layers;
    const auto count = [&base](std::int64_t n) {
      return count_parameters(with_layers(base, n).model);
    };
    CHECK(count(layers) == count_parameters(base.model));
    const auto table = make_layer_table(base.model, {.micro_batch = 1, .sequence_length = 128});
    const std::int64_t block = table.layer(static_cast<std::size_t>(layers)).parameter_count;
    CHECK(count(layers + 1) - count(layers) == block);
    CHECK(count(layers + 7) - count(layers) == 7 * block);
  }
}

TEST_CASE("the config of a scaled model gives the same model again, so a plan file carries it",
          "[workloads][unit]") {
  for (const std::string& name : kFamilies) {
    CAPTURE(name);
    const Workload base = load(name);
    for (const Workload& scaled :
         {with_layers(base, 3), with_width(base, 2 * width_step(base.model))}) {
      const auto document = platform::Document::parse("plan", scaled.model_config, true);
      const ModelConfig again = read_model(document.root(), "");
      CHECK(again.model.name == scaled.model.name);
      CHECK(again.json == scaled.model_config);
      CHECK(count_parameters(again.model) == count_parameters(scaled.model));
    }
  }
}

TEST_CASE("a wider model keeps its heads' size, its groups and its shape, in every family",
          "[workloads][unit]") {
  for (const std::string& name : kFamilies) {
    CAPTURE(name);
    const Workload base = load(name);
    const Model& model = base.model;
    const std::int64_t step = width_step(model);
    CHECK(step % 128 == 0);
    // Between two and three times as wide.
    const std::int64_t hidden = (2 * model.hidden / step + 1) * step;
    const Model wider = with_width(base, hidden).model;
    CHECK(wider.hidden == hidden);
    CHECK(wider.head_dim == model.head_dim);
    CHECK(wider.heads * model.hidden == model.heads * hidden);
    if (model.kv_heads > 1) {
      CHECK(wider.heads / wider.kv_heads == model.heads / model.kv_heads);
    } else {
      CHECK(wider.kv_heads == 1);
    }
    // To the nearest layer, and to the nearest 128 of the feed-forward.
    const double ratio = static_cast<double>(hidden) / static_cast<double>(model.hidden);
    CHECK(static_cast<double>(wider.layers) ==
          Approx(static_cast<double>(model.layers) * ratio).margin(0.5));
    CHECK(static_cast<double>(wider.ffn) ==
          Approx(static_cast<double>(model.ffn) * ratio).margin(64));
    CHECK(wider.experts.has_value() == model.experts.has_value());
  }
}

TEST_CASE("GPT-2 XL at twice its width has twice its layers and the parameters of that",
          "[workloads][unit]") {
  // 1600 wide with 25 heads of 64: steps of lcm(64, 128) = 128. 3200 = 25 x 128: 50 heads, 96
  // blocks of 12 h^2 + 13 h, and (50257 + 1024 + 2) h.
  const Workload base = load("gpt2-xl");
  REQUIRE(width_step(base.model) == 128);
  const Workload wider = with_width(base, 3200);
  CHECK(wider.model.layers == 96);
  CHECK(wider.model.heads == 50);
  const std::int64_t h = 3200;
  CHECK(count_parameters(wider.model) == 96 * (12 * h * h + 13 * h) + (50257 + 1024 + 2) * h);
  CHECK(wider.model.name == "gpt2-xl, 3200 wide, 96 layers");
}

TEST_CASE("groups of queries make the steps between widths coarser", "[workloads][unit]") {
  // 8192 wide, 64 heads of 128 in 8 groups: a group is 1024 wide.
  CHECK(width_step(load("llama-2-70b").model) == 1024);
  // 4544 wide, 71 heads of 64 that share one key and value: lcm(64, 128).
  CHECK(width_step(load("falcon-7b").model) == 128);
}

TEST_CASE("a model may be shallower than its dense blocks", "[workloads][unit]") {
  const Model one = with_layers(load("deepseek-v2-lite"), 1).model;
  CHECK(one.layers == 1);
  REQUIRE(one.experts.has_value());
  CHECK(one.experts->first_dense_layers == 1);
}

}  // namespace
}  // namespace offstage::workloads
