#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "scheduler/memory_use.h"
#include "scheduler/plan.h"
#include "scheduler/step_graph.h"
#include "sim/simulate.h"
#include "tests/support/random_strategy.h"
#include "tests/support/small_machine.h"

namespace offstage::sim {
namespace {

using scheduler::Draw;
using scheduler::Plan;
using scheduler::PolicyKind;

workloads::Workload draw_workload(Draw& draw) {
  const std::int64_t layers = draw(1, 9);
  switch (draw(0, 3)) {
    case 0:
      return scheduler::small_workload(layers, false);
    case 1:
      return scheduler::small_mixture(layers, 0);
    case 2:
      return scheduler::small_mixture(layers, std::min<std::int64_t>(layers, 2));
    default:
      return scheduler::small_workload(layers, true);
  }
}

// Every knob there is: what the planner chooses, and what is the user's alone.
Plan draw_plan(Draw& draw, PolicyKind policy) {
  auto machine = scheduler::small_drive_machine(1'000'000);
  machine.gpus.resize(static_cast<std::size_t>(draw(1, 2)));
  auto workload = draw_workload(draw);
  workload.global_batch = static_cast<std::int64_t>(machine.gpus.size()) * draw(1, 8);
  auto strategy = scheduler::draw_strategy(draw, machine, workload);
  strategy.policy = policy;
  if (draw.one_in(4)) strategy.moments = scheduler::MomentPrecision::bf16;
  if (draw.one_in(4)) {
    strategy.clipping = scheduler::Clipping::exact;
    strategy.resident_state = 0;
  }
  return scheduler::make_plan(machine, workload, strategy);
}

std::vector<platform::Bytes> simulated_peaks(const Plan& plan) {
  const auto graph = scheduler::make_step_graph(plan, 2);
  const auto costs = scheduler::make_costs(plan, scheduler::exact_profile(), graph);
  const auto result = simulate({plan.machine, graph, costs, plan.strategy.policy, 4});
  return scheduler::pool_peaks(plan, graph, costs, result.trace);
}

TEST_CASE("the ledger is the simulated peak of every pool, on 500 random strategies", "[sim]") {
  const unsigned seed = 20261130;
  INFO("seed " << seed);
  Draw draw(seed);
  // How many plans had the parts that are easily forgotten.
  int uneven = 0, shared = 0, nvme = 0, clipped = 0, experts = 0, kept = 0;
  for (int i = 0; i < 500; ++i) {
    const Plan plan = draw_plan(draw, PolicyKind::planned);
    const auto peaks = simulated_peaks(plan);
    INFO("strategy " << i);
    for (const auto& pool : plan.memory.pools) {
      INFO(pool.name);
      CHECK(pool.total().value == peaks[pool.pool].value);
    }
    uneven += plan.strategy.cuts.size() > 1 ? 1 : 0;
    shared += plan.strategy.shares.empty() ? 0 : 1;
    nvme += plan.strategy.nvme_state > 0 ? 1 : 0;
    clipped += plan.strategy.clipping == scheduler::Clipping::exact ? 1 : 0;
    experts += plan.workload.model.experts ? 1 : 0;
    kept += plan.strategy.kept_activations > 0 ? 1 : 0;
  }
  CHECK(std::min({uneven, shared, nvme, clipped, experts, kept}) > 20);
}

TEST_CASE("under policies that leave program order no pool exceeds its ledger", "[sim]") {
  const unsigned seed = 4;
  INFO("seed " << seed);
  Draw draw(seed);
  for (int i = 0; i < 60; ++i) {
    const Plan plan = draw_plan(draw, i % 2 == 0 ? PolicyKind::fifo : PolicyKind::critical_path);
    const auto peaks = simulated_peaks(plan);
    INFO("strategy " << i);
    for (const auto& pool : plan.memory.pools) {
      INFO(pool.name);
      CHECK(pool.total().value >= peaks[pool.pool].value);
    }
  }
}

}  // namespace
}  // namespace offstage::sim
