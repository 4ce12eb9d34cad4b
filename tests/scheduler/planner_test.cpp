#include "scheduler/planner.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "scheduler/cost_model.h"
#include "scheduler/metrics.h"
#include "scheduler/step_graph.h"
#include "tests/support/small_machine.h"

namespace offstage::scheduler {
namespace {

using platform::Bytes;
using platform::Seconds;

platform::Machine roomy_machine() {
  auto machine = small_machine();
  for (auto& pool : machine.pools) pool.capacity.value = {10'000'000};
  return machine;
}

// A closed form in place of the simulator: the bound itself.
std::vector<Seconds> bounds(std::span<const Plan> plans) {
  std::vector<Seconds> steps;
  for (const auto& plan : plans) {
    const auto graph = make_step_graph(plan, 1);
    steps.push_back(
        step_bound(plan.machine, graph, make_costs(plan, exact_profile(), graph)).seconds);
  }
  return steps;
}

TEST_CASE("the planner takes the plan that is evaluated fastest", "[scheduler][unit]") {
  const auto machine = roomy_machine();
  const auto workload = small_workload(4, true);
  const auto profile = exact_profile();
  // Each plan is 2 % faster than the one evaluated before it, so the last one is the fastest, also
  // where it is handicapped by 1 % for a policy that decides when tasks complete.
  std::vector<Plan> seen;
  const auto evaluate = [&seen](std::span<const Plan> plans) {
    std::vector<Seconds> steps;
    for (const auto& plan : plans) {
      seen.push_back(plan);
      steps.push_back({1000.0 * std::pow(0.98, seen.size())});
    }
    return steps;
  };
  const auto result = choose_plan({machine, workload, profile, {}}, evaluate);
  REQUIRE(result.fits);
  REQUIRE(seen.size() > 1);
  CHECK(result.evaluated == seen.size());
  CHECK(result.step.value == Approx(1000.0 * std::pow(0.98, seen.size())));
  CHECK(result.plan.strategy.micro_batch == seen.back().strategy.micro_batch);
  REQUIRE(result.runner_up_step.has_value());
  CHECK(result.runner_up_step->value > result.step.value);
  CHECK_FALSE(result.plan.reasons.empty());
}

TEST_CASE("a plan that only another policy makes fast competes with those that are fast without",
          "[scheduler][unit]") {
  const auto machine = roomy_machine();
  const auto workload = small_workload(4, true);
  const auto profile = exact_profile();
  // In the plan's order a micro-batch of 1 is the fastest. Another policy gains it half a percent,
  // which is too little, and halves the step with a micro-batch of 2.
  const auto evaluate = [](std::span<const Plan> plans) {
    std::vector<Seconds> steps;
    for (const auto& plan : plans) {
      const auto micro_batch = plan.strategy.micro_batch;
      const bool planned = plan.strategy.policy == PolicyKind::planned;
      const double gain = planned ? 0.0 : micro_batch == 2 ? 0.5 : 0.005;
      steps.push_back({(micro_batch == 1 ? 1e9 : 1.1e9) * (1.0 - gain)});
    }
    return steps;
  };
  StrategyRequest request;
  request.layers_per_submodel = 1;
  const auto best = choose_plan({machine, workload, profile, request}, evaluate).plan.strategy;
  CHECK(best.policy == PolicyKind::resource_aware);
  CHECK(best.micro_batch == 2);
  // Room for the gradients of all four blocks.
  CHECK(best.host_gradient_slots == 4);
  request.policy = PolicyKind::planned;
  const auto fixed = choose_plan({machine, workload, profile, request}, evaluate).plan.strategy;
  CHECK(fixed.policy == PolicyKind::planned);
  CHECK(fixed.micro_batch == 1);
}

TEST_CASE("knobs fixed by the user stay fixed", "[scheduler][unit]") {
  const auto machine = roomy_machine();
  const auto workload = small_workload(4, true);
  const auto profile = exact_profile();
  StrategyRequest request;
  request.micro_batch = 2;
  request.layers_per_submodel = 4;
  request.activations = ActivationPlace::cpu;
  const auto result = choose_plan({machine, workload, profile, request}, bounds);
  CHECK(result.plan.strategy.micro_batch == 2);
  CHECK(result.plan.strategy.layers_per_submodel == 4);
  CHECK(result.plan.strategy.activations == ActivationPlace::cpu);
  CHECK(std::ranges::any_of(result.plan.reasons, [](const std::string& reason) {
    return reason == "micro_batch 2: fixed in the config";
  }));
}

TEST_CASE("state that neither CPU memory nor the GPUs can hold goes to NVMe", "[scheduler][unit]") {
  auto machine = roomy_machine();
  const auto workload = small_workload(4, true);
  const auto profile = exact_profile();
  platform::Drive drive;
  drive.name = "nvme0";
  drive.pool = machine.pools.size();
  machine.drives.push_back(drive);
  platform::Pool pool;
  pool.name = "nvme0";
  pool.kind = platform::PoolKind::nvme;
  pool.capacity.value = {10'000'000};
  machine.pools.push_back(pool);
  // Exactly what the plan needs that has the state of all four blocks on the drive. Were it on the
  // GPUs instead, CPU memory would suffice too, but theirs would not.
  Strategy strategy;
  strategy.weight_slots = 1;
  strategy.host_gradient_slots = 1;
  strategy.spare_activation_slots = 1;
  strategy.nvme_state = 4;
  const auto plan = make_plan(machine, workload, strategy);
  for (std::size_t i = 0; i < machine.pools.size(); ++i) {
    machine.pools[i].capacity.value = plan.memory.pools[i].total();
  }
  CHECK(anything_fits({machine, workload, profile, {}}));
  StrategyRequest without;
  without.nvme_state = 0;
  CHECK_FALSE(anything_fits({machine, workload, profile, without}));
}

TEST_CASE("when nothing fits the plan that lacks least is returned with its shortfall",
          "[scheduler][unit]") {
  auto machine = roomy_machine();
  machine.pools[0].capacity.value = {1};
  const auto workload = small_workload(4, true);
  const auto profile = exact_profile();
  const auto result = choose_plan({machine, workload, profile, {}}, bounds);
  CHECK_FALSE(result.fits);
  // The least of anything: one block a sub-model, single slots, one sequence at a time.
  CHECK(result.plan.strategy.micro_batch == 1);
  CHECK(result.plan.strategy.layers_per_submodel == 1);
  CHECK(result.plan.strategy.weight_slots == 1);
  CHECK_THAT(result.plan.memory.shortfall_message(), Catch::Contains("gpu0 is short by"));
}

TEST_CASE("planning is deterministic", "[scheduler][unit]") {
  const auto machine = roomy_machine();
  const auto workload = small_workload(4, true);
  const auto profile = exact_profile();
  const auto a = choose_plan({machine, workload, profile, {}}, bounds);
  const auto b = choose_plan({machine, workload, profile, {}}, bounds);
  CHECK(a.plan.reasons == b.plan.reasons);
  CHECK(a.step == b.step);
}

TEST_CASE("a batch that can't be dealt in equal shares is refused with the nearest that can",
          "[scheduler][unit]") {
  const auto machine = roomy_machine();
  auto workload = small_workload(4, true);
  workload.global_batch = 7;
  const auto profile = exact_profile();
  StrategyRequest even;
  even.shares.emplace();
  CHECK_THROWS_WITH(choose_plan({machine, workload, profile, even}, bounds),
                    Catch::Contains("global_batch 7") && Catch::Contains("6 and 8"));
}

}  // namespace
}  // namespace offstage::scheduler
