#include "scheduler/shares.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/document.h"
#include "scheduler/cost_model.h"
#include "scheduler/metrics.h"
#include "scheduler/plan_estimate.h"
#include "scheduler/step_graph.h"
#include "tests/support/small_machine.h"

namespace offstage::scheduler {
namespace {

using platform::Seconds;
using Shares = std::vector<std::int64_t>;

// With room for everything and links that are never in the way.
platform::Machine roomy_machine(double second_speed = 1.0) {
  auto machine = small_machine();
  for (auto& pool : machine.pools) pool.capacity.value = {10'000'000};
  for (auto& link : machine.links) link.capacity.value.value *= 1e6;
  machine.gpus[1].speed = second_speed;
  return machine;
}

workloads::Workload sequences(std::int64_t count) {
  auto workload = small_workload(4, true);
  workload.global_batch = count;
  return workload;
}

Plan shared_plan(const Shares& shares) {
  Strategy strategy;
  strategy.shares = shares;
  return make_plan(small_machine(), small_workload(4, true), strategy);
}

std::int64_t line(const Plan& plan, const std::string& pool, const std::string& what) {
  const auto found = std::ranges::find(plan.memory.pools, pool, &PoolLedger::name);
  REQUIRE(found != plan.memory.pools.end());
  const auto entry = std::ranges::find(found->lines, what, &LedgerLine::what);
  REQUIRE(entry != found->lines.end());
  return entry->bytes.value;
}

std::int64_t tasks(const TaskGraph& graph, TaskKind kind, std::uint16_t gpu) {
  return std::ranges::count_if(
      graph.tasks, [&](const Task& task) { return task.kind == kind && task.gpu == gpu; });
}

// In place of the simulator: the busiest engine or link.
std::vector<Seconds> bounds(std::span<const Plan> plans) {
  std::vector<Seconds> steps;
  for (const auto& plan : plans) {
    steps.push_back(estimated_bound(plan, exact_profile()).seconds);
  }
  return steps;
}

PlanningResult planned(const platform::Machine& machine, std::int64_t batch,
                       const StrategyRequest& request = {}) {
  const auto workload = sequences(batch);
  const auto profile = exact_profile();
  return choose_plan({machine, workload, profile, request}, bounds);
}

}  // namespace

TEST_CASE("each GPU has the slots and tasks of its own micro-batches", "[scheduler][unit]") {
  const Plan plan = shared_plan({6, 2});
  CHECK(plan.micro_batches(0) == 6);
  CHECK(plan.micro_batches(1) == 2);
  CHECK(plan.most_micro_batches() == 6);
  CHECK(plan.step_micro_batches() == 8);
  CHECK(plan.first_micro_batch(0) == 0);
  CHECK(plan.first_micro_batch(1) == 6);
  // Embedding, four blocks, head: five boundaries, each 16 tokens x 8 x 2 B = 256 B.
  CHECK(line(plan, "gpu0", "boundary activations") == 5 * 6 * 256);
  CHECK(line(plan, "gpu1", "boundary activations") == 5 * 2 * 256);
  // Two ids of 8 B for each of 16 tokens.
  CHECK(line(plan, "host0", "token ids of gpu0") == 6 * 16 * 16);
  CHECK(line(plan, "host0", "token ids of gpu1") == 2 * 16 * 16);
  // The head goes forward and back in one task.
  const TaskGraph graph = make_step_graph(plan, 1);
  CHECK(tasks(graph, TaskKind::forward, 0) == 5 * 6);
  CHECK(tasks(graph, TaskKind::forward, 1) == 5 * 2);
  CHECK(tasks(graph, TaskKind::backward, 0) == 6 * 6);
  CHECK(tasks(graph, TaskKind::backward, 1) == 6 * 2);
}

TEST_CASE("equal shares are the plan that lists none", "[scheduler][unit]") {
  CHECK(shared_plan({4, 4}).strategy.shares.empty());
  CHECK(shared_plan({4, 4}).micro_batches(1) == 4);
}

TEST_CASE("shares that are not the batch are refused with what they come to", "[scheduler][unit]") {
  using Catch::Contains;
  CHECK_THROWS_WITH(shared_plan({6, 3}), Contains("shares [6, 3] are 9 micro-batches of 1") &&
                                             Contains("global_batch is 8"));
  CHECK_THROWS_WITH(shared_plan({8, 0}), Contains("one micro-batch at least"));
  CHECK_THROWS_WITH(shared_plan({4, 2, 2}), Contains("3 numbers of micro-batches for 2 GPUs"));
  Strategy strategy;
  strategy.shares = {6, 2};
  strategy.tensor_ways = 2;
  auto machine = small_machine();
  machine.collectives.push_back(machine.collectives.front());
  machine.collectives.back().kind = platform::CollectiveKind::all_reduce;
  CHECK_THROWS_WITH(make_plan(machine, small_workload(4, true), strategy),
                    Contains("uneven ones need the batch split on one host"));
}

TEST_CASE("a config says auto, even or a list of shares", "[scheduler][unit]") {
  const auto read = [](const std::string& text) {
    return read_strategy(platform::Document::parse("s.yaml", text, false).root()).shares;
  };
  CHECK_FALSE(read("{shares: auto}").has_value());
  CHECK(read("{shares: even}") == Shares{});
  CHECK(read("{shares: [3, 1]}") == Shares{3, 1});
  CHECK_THROWS_WITH(read("{shares: [3, 0]}"), Catch::Contains("s.yaml:1:14"));
  CHECK_THROWS_WITH(read("{shares: evn}"), Catch::Contains("even"));
}

TEST_CASE("a GPU half as fast gets half as many micro-batches", "[scheduler][unit]") {
  // 9 micro-batches: 6 t on the one, 3 x 2 t on the other; any other deal takes 7 t or more.
  const auto machine = roomy_machine(0.5);
  const auto workload = sequences(9);
  const auto profile = exact_profile();
  CHECK_FALSE(gpus_alike(machine));
  CHECK(best_shares({machine, workload, profile, {}}, {}) == Shares{6, 3});
}

TEST_CASE("GPUs that are alike share a batch that does not come out even", "[scheduler][unit]") {
  const auto machine = roomy_machine();
  CHECK(gpus_alike(machine));
  CHECK(nearly_even(7, 2) == Shares{4, 3});
  CHECK(nearly_even(8, 2).empty());
  const auto result = planned(machine, 7);
  REQUIRE(result.fits);
  // 7 is prime: micro-batches of one.
  CHECK(result.plan.strategy.micro_batch == 1);
  CHECK(result.plan.strategy.shares == Shares{4, 3});
  const auto reason = std::ranges::find_if(
      result.plan.reasons, [](const auto& text) { return text.starts_with("shares [4, 3]"); });
  CHECK(reason != result.plan.reasons.end());
}

TEST_CASE("the planner moves work from a slow GPU, unless even shares are asked for",
          "[scheduler][unit]") {
  const auto machine = roomy_machine(0.5);
  StrategyRequest even;
  even.shares.emplace();
  even.micro_batch = 1;
  StrategyRequest open;
  open.micro_batch = 1;
  const auto slow = planned(machine, 12, even);
  const auto fast = planned(machine, 12, open);
  CHECK(slow.plan.strategy.shares.empty());
  CHECK(fast.plan.strategy.shares == Shares{8, 4});
  // 8 t instead of 6 x 2 t, where compute is what a step waits for.
  CHECK(fast.step.value == Approx(slow.step.value * 8 / 12));
}

TEST_CASE("with fewer sequences than GPUs the batch can't be dealt", "[scheduler][unit]") {
  CHECK_THROWS_WITH(planned(roomy_machine(), 1),
                    Catch::Contains("can't be dealt evenly to 2 GPUs"));
}

TEST_CASE("the bound of unequal shares is that of their own graph", "[scheduler][unit]") {
  Strategy strategy;
  strategy.shares = {7, 2};
  strategy.activations = ActivationPlace::cpu;
  const Plan plan = make_plan(small_machine(), sequences(9), strategy);
  const auto graph = make_step_graph(plan, 1);
  const auto work = resource_work(plan.machine, graph, make_costs(plan, exact_profile(), graph));
  CHECK(estimated_bound(plan, exact_profile()).seconds.value ==
        Approx(std::ranges::max_element(work)->value));
}

}  // namespace offstage::scheduler
