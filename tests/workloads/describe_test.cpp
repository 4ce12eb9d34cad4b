#include "workloads/describe.h"

#include <string>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "workloads/model_library.h"

namespace offstage::workloads {
namespace {

Model load(const std::string& name) { return load_model(name, "../workloads/models").model; }

TEST_CASE("the description of a model names its parameters and its layers", "[workloads][unit]") {
  const Model model = load("gpt2");
  const std::string text = describe_model(model, usual_batch(model));
  CHECK_THAT(text, Catch::Contains("124439808 parameters"));
  CHECK_THAT(text, Catch::Contains("1 x 1024 tokens in bf16"));
  CHECK_THAT(text, Catch::Contains("qkv.wgrad"));
}

TEST_CASE("a model's JSON has one entry for each layer", "[workloads][unit]") {
  const Model model = load("gpt2");
  const auto json = model_to_json(model, usual_batch(model));
  CHECK(json["parameters"] == 124439808);
  CHECK(json["layers"].size() == 14);
  CHECK(json["layers"][1]["class"] == "block");
  CHECK(json["flops_per_token"] == 807252480.0);
  CHECK(json["classes"][1]["layers"] == 12);
  CHECK(json["classes"][1]["tensors"][0]["name"] == "ln_1.weight");
}

TEST_CASE("an encoder model is described by its count and a reason", "[workloads][unit]") {
  const Model model =
      load_model("workloads/data/hf_configs/t5-3b.json", "../workloads/models").model;
  CHECK_THAT(describe_model(model, usual_batch(model)),
             Catch::Contains("2851598336") && Catch::Contains("encoder model"));
  const auto json = model_to_json(model, usual_batch(model));
  CHECK(json["plannable"] == false);
  CHECK(json["layers"].empty());
}

}  // namespace
}  // namespace offstage::workloads
