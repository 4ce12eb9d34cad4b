#include "workloads/model_library.h"

#include <string>

#include <catch2/catch.hpp>

#include "platform/document.h"
#include "platform/error.h"
#include "workloads/layer_table.h"

namespace offstage::workloads {
namespace {

using platform::Document;

const std::string kModels = "../workloads/models";

TEST_CASE("every model of the library reads, with its name", "[workloads][unit]") {
  const auto names = model_names(kModels);
  CHECK(names.size() >= 30);
  for (const std::string& name : names) {
    CAPTURE(name);
    const Model model = load_model(name, kModels).model;
    CHECK(model.name == name);
    CHECK(plannable(model));
  }
}

TEST_CASE("GPT-3 has 175 billion parameters", "[workloads][unit]") {
  // h 12288, 96 blocks of 12 h^2 + 13 h, words 50257 h, positions 2048 h, final norm 2 h.
  const std::int64_t h = 12288;
  CHECK(count_parameters(load_model("gpt3-175b", kModels).model) ==
        96 * (12 * h * h + 13 * h) + (50257 + 2048 + 2) * h);
}

TEST_CASE("an unknown name is answered with the known ones", "[workloads][unit]") {
  CHECK_THROWS_WITH(load_model("lama-2-7b", kModels),
                    Catch::Contains("did you mean 'llama-2-7b'?") && Catch::Contains("gpt3-175b"));
}

TEST_CASE("a config's model may be a name, a path beside the file, or a map", "[workloads][unit]") {
  const auto named = Document::parse("run.yaml", "model: gpt2", false);
  CHECK(read_model(named.root().at("model"), kModels).model.layers == 12);
  const auto path =
      Document::parse("workloads/run.yaml", "model: data/hf_configs/gpt2-xl.json", false);
  CHECK(read_model(path.root().at("model"), kModels).model.name == "gpt2-xl");
  const auto inline_map = Document::parse("run.yaml",
                                          "model: {model_type: gpt2, n_layer: 2, n_embd: 8, "
                                          "n_head: 2, vocab_size: 10, n_positions: 4}",
                                          false);
  CHECK(read_model(inline_map.root().at("model"), kModels).model.name == "GPT2LMHeadModel");
}

TEST_CASE("a missing file or name is complained about where it is written", "[workloads][unit]") {
  const auto path = Document::parse("here/run.yaml", "a: 1\nmodel: nowhere.json", false);
  CHECK_THROWS_WITH(read_model(path.root().at("model"), kModels),
                    Catch::Contains("here/run.yaml:2:8") && Catch::Contains("here/nowhere.json"));
  const auto named = Document::parse("run.yaml", "model: gtp2", false);
  CHECK_THROWS_WITH(read_model(named.root().at("model"), kModels),
                    Catch::Contains("run.yaml:1:8") && Catch::Contains("did you mean 'gpt2'?"));
}

TEST_CASE("a model's JSON text reads back as the same model", "[workloads][unit]") {
  const ModelConfig first = load_model("llama-3.2-1b", kModels);
  const auto again = Document::parse("plan.json", "{\"model\": " + first.json + "}", true);
  const ModelConfig second = read_model(again.root().at("model"), kModels);
  CHECK(second.json == first.json);
  CHECK(second.model.name == "llama-3.2-1b");
  CHECK(count_parameters(second.model) == count_parameters(first.model));
}

}  // namespace
}  // namespace offstage::workloads
