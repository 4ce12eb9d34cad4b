#include "scheduler/plan_file.h"

#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "platform/error.h"
#include "tests/support/small_machine.h"

namespace offstage::scheduler {
namespace {

using nlohmann::json;
using platform::Document;

const char* const kModel = R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"],
  "n_layer": 4, "n_embd": 8, "n_head": 2, "vocab_size": 100, "n_positions": 16})";

Plan sample_plan(const std::vector<std::int64_t>& shares = {}) {
  const std::string text = std::string("{\"model\": ") + kModel +
                           ", \"sequence_length\": 16, \"global_batch\": 8, \"precision\": "
                           "\"bf16\", \"optimizer\": \"adamw\"}";
  const auto workload = workloads::read_workload(Document::parse("w", text, true).root(), "");
  auto machine = small_machine();
  machine.reference = "\"small\"";
  Strategy strategy;
  strategy.micro_batch = 2;
  strategy.shares = shares;
  strategy.layers_per_submodel = 3;
  strategy.activations = ActivationPlace::cpu;
  auto plan = make_plan(machine, workload, strategy);
  plan.reasons = {"because"};
  return plan;
}

Plan read_back(const json& file) {
  return read_plan(Document::parse("plan.json", file.dump(1), true), sample_plan().machine);
}

TEST_CASE("a plan survives its file", "[scheduler][unit]") {
  const auto plan = sample_plan();
  const auto file = plan_to_json(plan);
  const auto again = read_back(file);
  CHECK(plan_to_json(again) == file);
  CHECK(plan_hash(again) == plan_hash(plan));
  CHECK(again.reasons == plan.reasons);
  CHECK(file["plan_hash"].get<std::string>().size() == 32);
}

TEST_CASE("a plan with unequal shares lists them, and one with equal ones is as it was",
          "[scheduler][unit]") {
  // 8 sequences are 4 micro-batches of 2.
  const auto plan = sample_plan({3, 1});
  const auto file = plan_to_json(plan);
  CHECK(file["strategy"]["shares"] == json({3, 1}));
  const auto again = read_back(file);
  CHECK(again.strategy.shares == plan.strategy.shares);
  CHECK(plan_hash(again) == plan_hash(plan));
  CHECK(plan_hash(plan) != plan_hash(sample_plan({1, 3})));
  CHECK(plan_hash(sample_plan({2, 2})) == plan_hash(sample_plan()));
  CHECK_FALSE(plan_to_json(sample_plan({2, 2}))["strategy"].contains("shares"));
}

TEST_CASE("a plan file is told from a run config", "[scheduler][unit]") {
  CHECK(is_plan_document(Document::parse("p", plan_to_json(sample_plan()).dump(), true)));
  CHECK_FALSE(is_plan_document(Document::parse("c", "platform: dgx-a100-80", false)));
}

TEST_CASE("the hash follows what is done, not what the machine has to spare", "[scheduler][unit]") {
  auto plan = sample_plan();
  const auto hash = plan_hash(plan);
  plan.machine.pools[0].capacity.value = {123};
  plan.memory.pools[0].capacity = {123};
  CHECK(plan_hash(plan) == hash);
  plan.strategy.weight_slots = 3;
  CHECK(plan_hash(plan) != hash);
}

TEST_CASE("an edited plan is refused at the place that no longer follows", "[scheduler][unit]") {
  auto file = plan_to_json(sample_plan());
  file["submodels"][1]["parameters"] = 7;
  CHECK_THROWS_WITH(read_back(file), Catch::Contains("submodels") && Catch::Contains("7 written"));

  file = plan_to_json(sample_plan());
  file["strategy"]["weight_slots"] = 3;
  CHECK_THROWS_WITH(read_back(file), Catch::Contains("run `offstage plan` again"));

  file = plan_to_json(sample_plan());
  file["strategy"].erase("policy");
  CHECK_THROWS_WITH(read_back(file), Catch::Contains("`policy` is missing"));

  file = plan_to_json(sample_plan());
  file["offstage_plan"] = 99;
  CHECK_THROWS_AS(read_back(file), Error);

  file = plan_to_json(sample_plan());
  file["stategy"] = 1;
  CHECK_THROWS_WITH(read_back(file), Catch::Contains("stategy") && Catch::Contains("strategy"));
}

}  // namespace
}  // namespace offstage::scheduler
