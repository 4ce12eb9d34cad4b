#include "scheduler/strategy_knobs.h"

#include <catch2/catch.hpp>

namespace offstage::scheduler {
namespace {

TEST_CASE("a request that fixes every knob gives the strategy back", "[scheduler][unit]") {
  Strategy strategy;
  strategy.tensor_ways = 4;
  strategy.cuts = {2, 3};
  strategy.micro_batch = 5;
  strategy.weight_slots = 3;
  strategy.nvme_state = 1;
  strategy.activations = ActivationPlace::cpu;
  strategy.moments = MomentPrecision::bf16;
  strategy.policy = PolicyKind::critical_path;
  CHECK(key_of(fixed_knobs(every_knob(strategy))) == key_of(strategy));
  CHECK(key_of(strategy) != key_of(Strategy{}));
}

TEST_CASE("every knob makes a strategy another one", "[scheduler][unit]") {
  const Strategy plain;
  const StrategyRequest unused;
  int knobs = 0;
  Strategy changed;
  for_each_knob(changed, unused, [&](const char* name, auto& knob, const auto&) {
    INFO(name);
    using Knob = std::remove_reference_t<decltype(knob)>;
    const Knob before = knob;
    knob = static_cast<Knob>(static_cast<int>(before) == 0 ? 1 : 0);
    CHECK(key_of(changed) != key_of(plain));
    knob = before;
    ++knobs;
  });
  CHECK(knobs == 15);
}

}  // namespace
}  // namespace offstage::scheduler
