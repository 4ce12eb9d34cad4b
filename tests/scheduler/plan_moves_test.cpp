#include "scheduler/plan_moves.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <catch2/catch.hpp>

#include "scheduler/strategy_knobs.h"
#include "tests/support/small_machine.h"

namespace offstage::scheduler {
namespace {

using platform::Bytes;
using platform::Machine;
using platform::PoolKind;

Machine roomy_machine() {
  auto machine = small_machine();
  for (auto& pool : machine.pools) pool.capacity.value = {10'000'000};
  return machine;
}

Bytes gpu_total(const Machine& machine, const workloads::Workload& workload,
                const Strategy& strategy) {
  return make_plan(machine, workload, strategy).memory.pools.front().total();
}

void limit_gpus(Machine& machine, Bytes capacity) {
  for (auto& pool : machine.pools) {
    if (pool.kind == PoolKind::gpu) pool.capacity.value = capacity;
  }
}

TEST_CASE("a strategy is refitted with as much kept, and as much resident, as the GPUs hold",
          "[scheduler][unit]") {
  auto machine = roomy_machine();
  const auto workload = small_workload(7, true);
  const auto profile = exact_profile();
  Strategy strategy;
  strategy.kept_activations = 3;
  // Room for three that keep, to the byte.
  limit_gpus(machine, gpu_total(machine, workload, strategy));
  for (const std::int64_t from : {0, 5}) {
    strategy.kept_activations = from;
    const auto fitting = refitted({machine, workload, profile, {}}, strategy);
    REQUIRE_FALSE(fitting.empty());
    CHECK(fitting[0].kept_activations == 3);
    CHECK(fitting[0].resident_state == 0);
  }
  strategy.kept_activations = 0;
  const auto fitting = refitted({machine, workload, profile, {}}, strategy);
  REQUIRE(fitting.size() == 2);
  CHECK(fitting[1].kept_activations == 0);
  CHECK(make_plan(machine, workload, fitting[1]).memory.fits());
  auto more = fitting[1];
  ++more.resident_state;
  CHECK_FALSE(make_plan(machine, workload, more).memory.fits());
}

TEST_CASE("refitting leaves alone what the user fixed", "[scheduler][unit]") {
  const auto machine = roomy_machine();
  const auto workload = small_workload(7, true);
  const auto profile = exact_profile();
  StrategyRequest request;
  request.kept_activations = 1;
  request.resident_state = 2;
  CHECK(refitted({machine, workload, profile, request}, fixed_knobs(request)).empty());
}

TEST_CASE("where packs of two fit and packs of one don't, as few as needed are of two",
          "[scheduler][unit]") {
  auto machine = roomy_machine();
  auto workload = small_workload(8, true);
  // 32 micro-batches on each of two GPUs: a cut holds 32 x 16 tokens x 8 hidden x 2 B = 8,192 B.
  workload.global_batch = 64;
  const auto profile = exact_profile();
  Strategy strategy;
  strategy.cuts = {2, 2, 2, 1, 1};
  limit_gpus(machine, gpu_total(machine, workload, strategy));
  // One pack of two less is one cut more, 8,192 B over.
  strategy.cuts = {2, 2, 1, 1, 1, 1};
  CHECK(gpu_total(machine, workload, strategy).value ==
        machine.pools.front().capacity.value.value + 8192);
  strategy.cuts = {};
  const auto cuts = mixed_cuts({machine, workload, profile, {}}, strategy, 2, 1);
  CHECK(cuts == std::vector<std::int64_t>{2, 2, 2, 1, 1});
}

TEST_CASE("neighbours change what is open and nothing else", "[scheduler][unit]") {
  const auto machine = roomy_machine();
  const auto workload = small_workload(7, true);
  const auto profile = exact_profile();
  StrategyRequest request;
  request.micro_batch = 2;
  request.weight_slots = 3;
  request.kept_activations = 1;
  request.activations = ActivationPlace::gpu;
  const Strategy strategy = fixed_knobs(request);
  const auto all = neighbours({machine, workload, profile, request}, strategy);
  REQUIRE_FALSE(all.empty());
  for (const auto& s : all) {
    CHECK(s.micro_batch == 2);
    CHECK(s.weight_slots == 3);
    CHECK(s.kept_activations == 1);
    CHECK(s.activations == ActivationPlace::gpu);
    CHECK(key_of(s) != key_of(strategy));
  }
}

TEST_CASE("the search goes through several knobs to the best there is", "[scheduler][unit]") {
  const auto machine = roomy_machine();
  const auto workload = small_workload(7, true);
  const auto profile = exact_profile();
  // Far above every bound; 1 % worse for each slot or sub-model away from a strategy that is far
  // from where the search starts.
  const auto evaluate = [](std::span<const Plan> plans) {
    std::vector<platform::Seconds> steps;
    for (const auto& plan : plans) {
      const auto& s = plan.strategy;
      const auto away = std::abs(s.host_gradient_slots - 14) + std::abs(s.weight_slots - 4) +
                        std::abs(s.resident_state - 4) + std::abs(s.kept_activations - 2);
      steps.push_back({1e9 * (1.0 + 0.01 * static_cast<double>(away))});
    }
    return steps;
  };
  StrategyRequest request;
  request.policy = PolicyKind::planned;
  const auto found = choose_plan({machine, workload, profile, request}, evaluate);
  CHECK(found.step.value == Approx(1e9));
  CHECK(found.plan.strategy.host_gradient_slots == 14);
  CHECK(found.plan.strategy.weight_slots == 4);
  CHECK(found.plan.strategy.resident_state == 4);
  CHECK(found.plan.strategy.kept_activations == 2);
}

}  // namespace
}  // namespace offstage::scheduler
