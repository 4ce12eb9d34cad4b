#include "scheduler/strategy.h"

#include <string>

#include <catch2/catch.hpp>

#include "platform/document.h"

namespace offstage::scheduler {
namespace {

StrategyRequest read(const std::string& text) {
  const auto document = platform::Document::parse("run.yaml", "strategy: " + text, false);
  return read_strategy(document.root().at("strategy"));
}

TEST_CASE("auto leaves every knob open", "[scheduler][unit]") {
  const auto request = read("auto");
  CHECK_FALSE(request.micro_batch.has_value());
  CHECK_FALSE(request.policy.has_value());
}

TEST_CASE("a map fixes the knobs it names and leaves the rest open", "[scheduler][unit]") {
  const auto request = read("{micro_batch: 4, activations: cpu, policy: critical_path}");
  CHECK(request.micro_batch == 4);
  CHECK(request.activations == ActivationPlace::cpu);
  CHECK(request.policy == PolicyKind::critical_path);
  CHECK_FALSE(request.weight_slots.has_value());
}

TEST_CASE("a bad strategy is refused with the place and what is allowed", "[scheduler][unit]") {
  CHECK_THROWS_WITH(read("best"), Catch::Contains("run.yaml:1:11") && Catch::Contains("auto"));
  CHECK_THROWS_WITH(read("{micro_bach: 4}"), Catch::Contains("micro_batch"));
  CHECK_THROWS_WITH(read("{micro_batch: 0}"), Catch::Contains("0"));
  CHECK_THROWS_WITH(read("{activations: disk}"), Catch::Contains("gpu") && Catch::Contains("cpu"));
  CHECK_THROWS_WITH(read("[1, 2]"), Catch::Contains("map of knobs"));
  CHECK_THROWS_WITH(read("{split: expert}"), Catch::Contains("batch"));
  CHECK_THROWS_WITH(read("{split: batch, tensor_ways: 2}"), Catch::Contains("contradicts"));
  CHECK_THROWS_WITH(read("{split: tensor, tensor_ways: 1}"), Catch::Contains("contradicts"));
}

}  // namespace
}  // namespace offstage::scheduler
