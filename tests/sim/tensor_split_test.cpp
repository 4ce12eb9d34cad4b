#include <random>

#include <catch2/catch.hpp>

#include "platform/machine_reader.h"
#include "scheduler/memory_use.h"
#include "scheduler/metrics.h"
#include "scheduler/plan.h"
#include "scheduler/step_graph.h"
#include "sim/simulate.h"
#include "tests/support/small_machine.h"

namespace offstage::sim {
namespace {

using scheduler::Plan;

TEST_CASE("with tensor splits and mixes the ledger is the simulated peak, never below the bound",
          "[sim]") {
  const unsigned seed = 20261201;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto draw = [&random](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  const auto machine = platform::load_machine("dgx-a100-80", "../platform/catalog");
  auto profile = scheduler::exact_profile();
  for (int i = 0; i < 60; ++i) {
    auto workload = scheduler::small_workload(5, draw(0, 1) == 1);
    workload.model.heads = workload.model.kv_heads = 8;
    workload.model.head_dim = 1;
    scheduler::Strategy strategy;
    strategy.tensor_ways = 1 << draw(0, 3);
    strategy.micro_batch = draw(1, 2);
    strategy.layers_per_submodel = draw(1, 3);
    strategy.weight_slots = draw(1, 3);
    strategy.gradient_slots = draw(1, 2);
    strategy.resident_state = draw(0, 1);
    strategy.resident_weights = draw(0, 1);
    strategy.kept_activations = draw(0, 2);
    strategy.activations =
        draw(0, 1) == 0 ? scheduler::ActivationPlace::gpu : scheduler::ActivationPlace::cpu;
    workload.global_batch = 8 / strategy.tensor_ways * strategy.micro_batch * draw(1, 4);
    const Plan plan = scheduler::make_plan(machine, workload, strategy);
    const auto graph = scheduler::make_step_graph(plan, 3);
    const auto costs = scheduler::make_costs(plan, profile, graph);
    const auto result = simulate({plan.machine, graph, costs, strategy.policy, 4});
    const auto peaks = scheduler::pool_peaks(plan, graph, costs, result.trace);
    INFO("strategy " << i << ", " << strategy.tensor_ways << " ways");
    for (const auto& pool : plan.memory.pools) {
      INFO(pool.name);
      CHECK(pool.total().value == peaks[pool.pool].value);
    }
    const auto metrics = scheduler::measure(plan, graph, costs, result.trace);
    CHECK(metrics.efficiency <= 1.0 + 1e-9);
  }
}

}  // namespace
}  // namespace offstage::sim
