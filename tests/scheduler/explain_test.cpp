#include "scheduler/explain.h"

#include <span>
#include <vector>

#include <catch2/catch.hpp>

#include "scheduler/metrics.h"
#include "scheduler/plan_estimate.h"
#include "scheduler/step_graph.h"
#include "tests/support/small_machine.h"

namespace offstage::scheduler {
namespace {

using platform::Bytes;
using platform::Seconds;

TEST_CASE("the longest of the resources' bounds is the plan's bound", "[scheduler][unit]") {
  const Plan plan = small_plan(small_machine());
  const TaskGraph graph = make_step_graph(plan, 3);
  const auto costs = make_costs(plan, exact_profile(), graph);
  const auto bounds = resource_bounds(plan, graph, costs);
  const Bound bound = step_bound(plan.machine, graph, costs);
  REQUIRE_FALSE(bounds.empty());
  CHECK(bounds.front().seconds == bound.seconds);
  for (std::size_t i = 1; i < bounds.size(); ++i) {
    CHECK(bounds[i].seconds <= bounds[i - 1].seconds);
    CHECK(bounds[i].resource != bounds[i - 1].resource);
  }
}

TEST_CASE("a kind of resource is named by its busiest member", "[scheduler][unit]") {
  // gpu0 computes 2 s, gpu1 5 s; 60 B over the uplink of 10 B/s take 6 s.
  Plan plan = small_plan(small_machine());
  for (auto& route : plan.machine.routes) route.latency = {};
  TaskGraph graph;
  graph.engines = {{"gpu0.compute", EngineKind::compute, 0},
                   {"gpu1.compute", EngineKind::compute, 1},
                   {"gpu0.h2d", EngineKind::h2d, 0}};
  graph.steps = 1;
  std::vector<TaskCost> costs;
  const auto add = [&](EngineId engine, const TaskCost& cost) {
    graph.add({}, std::vector{engine}, {}, {});
    costs.push_back(cost);
  };
  add(0, {.exclusive = {2}, .route = {}, .amount = 0.0, .transient = {}});
  add(1, {.exclusive = {5}, .route = {}, .amount = 0.0, .transient = {}});
  add(2, {.exclusive = {}, .route = plan.machine.gpus[0].h2d[0], .amount = 60.0, .transient = {}});
  graph.finish();
  const auto bounds = resource_bounds(plan, graph, costs);
  const auto find = [&](const std::string& busiest) {
    for (const auto& bound : bounds) {
      if (bound.busiest == busiest) return bound;
    }
    FAIL("no bound of " << busiest);
    return bounds.front();
  };
  CHECK(find("gpu1.compute").resource == "GPU compute");
  CHECK(find("gpu1.compute").seconds.value == Approx(5.0));
  CHECK(find("gpu0.h2d").resource == "copies to a GPU");
  CHECK(find("gpu0.h2d").seconds.value == Approx(6.0));
  for (const auto& bound : bounds) CHECK(bound.busiest != "gpu0.compute");
}

TEST_CASE("every NUMA node of a socket has the same share of its pool", "[scheduler][unit]") {
  Plan plan = small_plan(small_machine());
  auto& socket = plan.machine.sockets[0];
  plan.memory.pools.resize(plan.machine.pools.size());
  auto& pool = plan.memory.pools[socket.pool];
  pool.name = "host0";
  pool.capacity = {4000};
  pool.lines = {{"state", {1200}, "", "", false}, {"operating system", {400}, "", "", true}};
  socket.numa_nodes = {0};
  CHECK(numa_shares(plan).empty());
  socket.numa_nodes = {0, 1, 2, 3};
  const auto shares = numa_shares(plan);
  REQUIRE(shares.size() == 1);
  CHECK(shares[0].pool == "host0");
  CHECK(shares[0].nodes == 4);
  CHECK(shares[0].total == Bytes{400});  // (1200 + 400) / 4
  CHECK(shares[0].capacity == Bytes{1000});
}

TEST_CASE("batches are doubled until the efficiency is good", "[scheduler][unit]") {
  // Each step takes 1000 s more than its bound, so its efficiency grows with the batch.
  auto machine = small_machine();
  for (auto& pool : machine.pools) pool.capacity.value = {10'000'000};
  const auto workload = small_workload(4, true);
  const auto profile = exact_profile();
  const auto evaluate = [&](std::span<const Plan> plans) {
    std::vector<Seconds> steps;
    for (const Plan& plan : plans) {
      steps.push_back(estimated_bound(plan, profile).seconds + Seconds{1000.0});
    }
    return steps;
  };
  const PlanningInput input{machine, workload, profile, {}};
  const auto none = larger_batches(input, evaluate, 1.0, 2);
  REQUIRE(none.size() == 2);
  CHECK(none[0].global_batch == 2 * workload.global_batch);
  CHECK(none[1].global_batch == 4 * workload.global_batch);
  CHECK(none[0].efficiency < none[1].efficiency);
  const auto reached = larger_batches(input, evaluate, none[0].efficiency, 2);
  REQUIRE(reached.size() == 1);
  CHECK(reached[0].efficiency == none[0].efficiency);
}

}  // namespace
}  // namespace offstage::scheduler
