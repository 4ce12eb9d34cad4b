#include "scheduler/metrics.h"

#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/small_machine.h"

using namespace offstage;
using namespace offstage::scheduler;
using platform::Bytes;
using platform::Seconds;

namespace {

constexpr EngineId kCompute = 0, kFetch0 = 1, kFetch1 = 2;

// Two steps of: each GPU fetches 30 B (route 0 or 2, one uplink of 10 B/s), GPU 0 computes. With
// `chained`, a step's fetch for GPU 0 waits for the computation of the one before.
struct Run {
  Plan plan = small_plan(small_machine());
  TaskGraph graph;
  std::vector<TaskCost> costs;
};

Run two_steps(Seconds compute, bool chained) {
  Run run;
  for (auto& route : run.plan.machine.routes) route.latency = {};
  run.graph.engines = {{"gpu0.compute", EngineKind::compute, 0},
                       {"gpu0.h2d", EngineKind::h2d, 0},
                       {"gpu1.h2d", EngineKind::h2d, 1}};
  run.graph.steps = 2;
  std::vector<TaskId> before;
  for (std::uint32_t step = 0; step < 2; ++step) {
    const auto fetch = [&](std::uint16_t gpu, EngineId engine) {
      const Task task{.kind = TaskKind::fetch, .gpu = gpu, .step = step, .bytes = Bytes{30}};
      run.costs.push_back({.exclusive = {}, .route = 2U * gpu, .amount = 30.0, .transient = {}});
      return run.graph.add(task, std::vector{engine}, gpu == 0 ? before : std::vector<TaskId>{},
                           {});
    };
    const TaskId fetched = fetch(0, kFetch0);
    fetch(1, kFetch1);
    const Task forward{.kind = TaskKind::forward, .step = step, .bytes = {}};
    run.costs.push_back({.exclusive = compute, .route = {}, .amount = 0.0, .transient = {40}});
    const TaskId computed = run.graph.add(forward, std::vector{kCompute}, std::vector{fetched}, {});
    if (chained) before = {computed};
  }
  run.graph.finish();
  return run;
}

}  // namespace

TEST_CASE("the bound is the chain of one more step when tasks wait for each other",
          "[scheduler][unit]") {
  // A fetch alone takes 3 s, compute 5 s: two chained steps 16 s, one 8 s. The uplink carries
  // 60 B a step in 6 s.
  const Run run = two_steps({5.0}, true);
  const Bound bound = step_bound(run.plan.machine, run.graph, run.costs);
  CHECK(bound.seconds.value == Approx(8.0));
  CHECK(bound.by == "critical path");
}

TEST_CASE("the bound is the busiest link when steps overlap", "[scheduler][unit]") {
  const Run run = two_steps({5.0}, false);
  const Bound bound = step_bound(run.plan.machine, run.graph, run.costs);
  CHECK(bound.seconds.value == Approx(6.0));
  CHECK(bound.by == "link down");
}

TEST_CASE("the bound is the busiest engine when its work is the most", "[scheduler][unit]") {
  const Run run = two_steps({7.0}, false);
  const Bound bound = step_bound(run.plan.machine, run.graph, run.costs);
  CHECK(bound.seconds.value == Approx(7.0));
  CHECK(bound.by == "gpu0.compute");
}

TEST_CASE("what caps each flow by itself bounds nothing together", "[scheduler][unit]") {
  Run run = two_steps({1.0}, false);
  for (auto& link : run.plan.machine.links) link.caps_each_flow = true;
  // Left are the engines: 3 s of fetching each.
  CHECK(step_bound(run.plan.machine, run.graph, run.costs).seconds.value == Approx(3.0));
}

TEST_CASE("metrics describe the steady state", "[scheduler][unit]") {
  Run run = two_steps({5.0}, true);
  run.graph.slots = {{SlotKind::weights, 0, 0, 0, Bytes{100}}};
  // Step 0 ends at 12 s; step 1 fetches from 12 to 24 (a lone time of 3 s stretched by waiting) and
  // computes until 45.
  const Trace trace{
      {{{0}, {6}}, {{0}, {6}}, {{6}, {12}}, {{12}, {24}}, {{12}, {24}}, {{24}, {45}}}};
  const Metrics metrics = measure(run.plan, run.graph, run.costs, trace);

  CHECK(metrics.step.value == Approx(33.0));
  CHECK(metrics.tokens_per_s == Approx(8.0 / 33.0));
  // Two blocks of 500 + 1000 FLOP and a head of 300 for 4 tokens, 8 tokens a step: 6600 FLOP, over
  // 33 s of two GPUs at 200 FLOP/s.
  CHECK(metrics.mfu == Approx(0.5));
  // A GPU three times as fast as its model has another peak, a slow one has not: 600 + 200 FLOP/s.
  run.plan.machine.gpus[0].speed = 3.0;
  run.plan.machine.gpus[1].speed = 0.5;
  CHECK(measure(run.plan, run.graph, run.costs, trace).mfu == Approx(0.25));
  CHECK(metrics.efficiency == Approx(8.0 / 33.0));

  REQUIRE(metrics.engines.size() == 3);
  CHECK(metrics.engines[0].busy.value == Approx(21.0));
  CHECK(metrics.engines[0].utilisation == Approx(21.0 / 33.0));
  CHECK(metrics.engines[1].busy.value == Approx(12.0));

  REQUIRE(metrics.links.size() == run.plan.machine.links.size());
  CHECK(metrics.links[0].bytes == Approx(30.0));  // lane0
  CHECK(metrics.links[2].bytes == Approx(60.0));  // down
  CHECK(metrics.links[2].utilisation == Approx(60.0 / (10 * 33.0)));
  // What caps each flow by itself is never full.
  run.plan.machine.links[2].caps_each_flow = true;
  CHECK(measure(run.plan, run.graph, run.costs, trace).links[2].utilisation == 0.0);
  CHECK(metrics.links[3].bytes == Approx(0.0));  // up

  REQUIRE(metrics.memory.size() == 3);
  CHECK(metrics.memory[0].peak == Bytes{7 + 100 + 40});  // context, slot, working space
  CHECK(metrics.memory[1].peak == Bytes{7});
  // System 11; 384 parameters x 12; 8 tokens x 16.
  CHECK(metrics.memory[2].peak == Bytes{11 + 4608 + 128});
  CHECK(metrics.memory[2].capacity == Bytes{5000});
}
