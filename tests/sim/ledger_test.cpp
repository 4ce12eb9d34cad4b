#include <algorithm>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/error.h"
#include "scheduler/memory_use.h"
#include "scheduler/plan.h"
#include "scheduler/step_graph.h"
#include "sim/simulate.h"
#include "tests/support/small_machine.h"

namespace offstage::sim {
namespace {

using scheduler::Plan;
using scheduler::Strategy;

// small_machine with a drive on a link of its own.
platform::Machine machine_with_drive() {
  auto machine = scheduler::small_machine();
  machine.pools.push_back({"nvme0",
                           platform::PoolKind::nvme,
                           {platform::Bytes{100'000}, "given", platform::Confidence::high},
                           {}});
  machine.links.push_back({"drive",
                           platform::LinkKind::nvme,
                           {platform::BytesPerSecond{5.0}, "given", platform::Confidence::high},
                           false});
  machine.routes.push_back({"nvme0", {machine.links.size() - 1}, {}});
  platform::Drive drive;
  drive.name = "nvme0";
  drive.pool = machine.pools.size() - 1;
  drive.read = drive.write = {machine.routes.size() - 1};
  machine.drives.push_back(drive);
  return machine;
}

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  int operator()(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1));
  }

 private:
  std::mt19937 random_;
};

Strategy draw_strategy(Draw& draw) {
  Strategy strategy;
  strategy.micro_batch = draw(1, 2);
  if (draw(0, 2) == 0) {
    const int first = draw(1, 6);
    strategy.cuts = {first, 7 - first};
  } else {
    strategy.layers_per_submodel = draw(1, 4);
  }
  const auto blocks =
      strategy.cuts.empty()
          ? static_cast<int>((7 + strategy.layers_per_submodel - 1) / strategy.layers_per_submodel)
          : 2;
  strategy.weight_slots = draw(1, 4);
  strategy.gradient_slots = draw(1, 3);
  strategy.host_gradient_slots = draw(1, 3);
  strategy.spare_activation_slots = draw(1, 3);
  strategy.activations =
      draw(0, 1) == 0 ? scheduler::ActivationPlace::gpu : scheduler::ActivationPlace::cpu;
  strategy.clipping = draw(0, 3) == 0 ? scheduler::Clipping::exact : scheduler::Clipping::none;
  strategy.moments =
      draw(0, 3) == 0 ? scheduler::MomentPrecision::bf16 : scheduler::MomentPrecision::f32;
  if (strategy.clipping == scheduler::Clipping::none) strategy.resident_state = draw(0, blocks);
  int left = blocks - static_cast<int>(strategy.resident_state);
  strategy.resident_weights = draw(0, left);
  left -= static_cast<int>(strategy.resident_weights);
  strategy.nvme_state = draw(0, left);
  strategy.nvme_slots = draw(1, 3);
  strategy.kept_activations = draw(0, blocks);
  return strategy;
}

TEST_CASE("the ledger is the simulated peak of every pool, on 500 random strategies", "[sim]") {
  const unsigned seed = 20261130;
  INFO("seed " << seed);
  Draw draw(seed);
  const auto profile = scheduler::exact_profile();
  for (int i = 0; i < 500; ++i) {
    auto machine = machine_with_drive();
    machine.gpus.resize(static_cast<std::size_t>(draw(1, 2)));
    auto workload = scheduler::small_workload(7, draw(0, 1) == 1);
    const Strategy strategy = draw_strategy(draw);
    workload.global_batch =
        static_cast<std::int64_t>(machine.gpus.size()) * strategy.micro_batch * draw(1, 4);
    const Plan plan = scheduler::make_plan(machine, workload, strategy);
    const auto graph = scheduler::make_step_graph(plan, 2);
    const auto costs = scheduler::make_costs(plan, profile, graph);
    const auto result = simulate({plan.machine, graph, costs, strategy.policy, 4});
    const auto peaks = scheduler::pool_peaks(plan, graph, costs, result.trace);
    INFO("strategy " << i);
    for (const auto& pool : plan.memory.pools) {
      INFO(pool.name);
      CHECK(pool.total().value == peaks[pool.pool].value);
    }
  }
}

}  // namespace
}  // namespace offstage::sim
