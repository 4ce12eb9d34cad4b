#include "scheduler/lost_time.h"

#include <algorithm>
#include <vector>

#include <catch2/catch.hpp>

#include "scheduler/cost_model.h"
#include "scheduler/manager.h"
#include "scheduler/policy.h"
#include "scheduler/step_graph.h"
#include "tests/support/max_min_simulator.h"
#include "tests/support/small_machine.h"

namespace offstage::scheduler {
namespace {

using platform::Seconds;

constexpr EngineId kCompute = 0, kH2d = 1, kCollective = 2, kOptimizer = 3;

// A graph and the trace that is claimed of it.
class Played {
 public:
  Played() {
    graph.engines = {{"gpu0.compute", EngineKind::compute, 0},
                     {"gpu0.h2d", EngineKind::h2d, 0},
                     {"gpu0.collective", EngineKind::collective, 0},
                     {"socket0.optimizer", EngineKind::optimizer, 0}};
  }
  TaskId add(const Task& task, EngineId engine, const std::vector<TaskId>& predecessors,
             const Interval& ran) {
    graph.steps = std::max(graph.steps, task.step + 1);
    trace.tasks.push_back(ran);
    return graph.add(task, std::vector{engine}, predecessors, {});
  }
  EngineLoss loss(EngineId engine = kCompute) {
    graph.finish();
    return lost_time(graph, trace, engine);
  }

  TaskGraph graph;
  Trace trace;
};

Task task(TaskKind kind, Payload payload = Payload::none, std::uint32_t step = 0) {
  Task result;
  result.kind = kind;
  result.payload = payload;
  result.step = step;
  return result;
}

void check(const EngineLoss& loss, LossKind kind, double forward, double backward, double turn) {
  CAPTURE(to_string(kind));
  const Loss& lost = loss.lost[static_cast<std::size_t>(kind)];
  CHECK(lost.forward.value == Approx(forward).margin(1e-12));
  CHECK(lost.backward.value == Approx(backward).margin(1e-12));
  CHECK(lost.turn.value == Approx(turn).margin(1e-12));
}

TEST_CASE("a gap is shared out along what the next task waited for", "[scheduler][unit]") {
  // compute  F 0-2 ........ F 6-8 . B 9-10
  // h2d        fetch 1-4
  // collective         gather 4-5
  // optimizer                              update 10-13
  // Of the gap 2-6 the fetch has 2-4, the gather 4-5, and 5-6 nobody; nor has 8-9. What follows the
  // last task, 10-13, is nobody's either.
  Played played;
  const auto first = played.add(task(TaskKind::forward), kCompute, {}, {{0}, {2}});
  const auto fetch = played.add(task(TaskKind::fetch, Payload::weights), kH2d, {}, {{1}, {4}});
  const auto gather =
      played.add(task(TaskKind::all_gather, Payload::weights), kCollective, {fetch}, {{4}, {5}});
  const auto second = played.add(task(TaskKind::forward), kCompute, {first, gather}, {{6}, {8}});
  const auto back = played.add(task(TaskKind::backward), kCompute, {second}, {{9}, {10}});
  played.add(task(TaskKind::update), kOptimizer, {back}, {{10}, {13}});
  const EngineLoss loss = played.loss();
  CHECK(loss.engine == "gpu0.compute");
  CHECK(loss.window == Seconds{13});
  CHECK(loss.busy == Seconds{5});
  check(loss, LossKind::weight_fetch, 2, 0, 0);
  check(loss, LossKind::collective, 1, 0, 0);
  check(loss, LossKind::order, 1, 1, 3);
  CHECK(loss.total_lost().value == Approx(8.0));
}

TEST_CASE("who waits in a queue waits for the task in front", "[scheduler][unit]") {
  // The weights 3-5 come behind activations 0-3 on the same engine: of the gap 1-5 each has two
  // seconds.
  Played played;
  played.add(task(TaskKind::forward), kCompute, {}, {{0}, {1}});
  played.add(task(TaskKind::fetch, Payload::activations), kH2d, {}, {{0}, {3}});
  const auto weights = played.add(task(TaskKind::fetch, Payload::weights), kH2d, {}, {{3}, {5}});
  played.add(task(TaskKind::forward), kCompute, {weights}, {{5}, {6}});
  const EngineLoss loss = played.loss();
  check(loss, LossKind::activation_copy, 2, 0, 0);
  check(loss, LossKind::weight_fetch, 2, 0, 0);
  CHECK(loss.total_lost().value == Approx(4.0));
}

TEST_CASE("the window is a step with neighbours, and gaps between steps are the turn",
          "[scheduler][unit]") {
  // Step s: forward 10s to 10s+4, update to 10s+9; the next step's weights come until 10s+10. Steps
  // end at 9, 19 and 29. From 9 to 19 the GPU is busy 10-14 and waits for the fetch 9-10 and the
  // update 14-19.
  Played played;
  std::vector<TaskId> ready;
  for (std::uint32_t s = 0; s < 3; ++s) {
    const double begin = 10.0 * s;
    if (s > 0) {
      ready = {played.add(task(TaskKind::fetch, Payload::weights, s), kH2d, ready,
                          {{begin - 1}, {begin}})};
    }
    const auto forward = played.add(task(TaskKind::forward, Payload::none, s), kCompute, ready,
                                    {{begin}, {begin + 4}});
    ready = {played.add(task(TaskKind::update, Payload::none, s), kOptimizer, {forward},
                        {{begin + 4}, {begin + 9}})};
  }
  const EngineLoss loss = played.loss();
  CHECK(loss.window == Seconds{10});
  CHECK(loss.busy == Seconds{4});
  check(loss, LossKind::weight_fetch, 0, 0, 1);
  check(loss, LossKind::optimizer, 0, 0, 5);
  // The optimizer, from 9 to 19: it waits for the fetch 9-10 and the GPU 10-14.
  const EngineLoss optimizer = lost_time(played.graph, played.trace, kOptimizer);
  CHECK(optimizer.busy == Seconds{5});
  check(optimizer, LossKind::compute, 0, 0, 4);
  check(optimizer, LossKind::weight_fetch, 0, 0, 1);
}

TEST_CASE("what is lost and what is busy are the whole step", "[scheduler][unit]") {
  const Plan plan = small_plan(small_machine());
  const TaskGraph graph = make_step_graph(plan, 3);
  const auto costs = make_costs(plan, exact_profile(), graph);
  testing::MaxMinSimulator backend(plan.machine, graph, costs);
  std::vector<Seconds> lone_times;
  for (const TaskCost& cost : costs) lone_times.push_back(lone_time(plan.machine, cost));
  const auto policy = make_policy(PolicyKind::planned, {graph, lone_times, 4});
  const Trace trace = Manager(graph, backend, *policy).run();
  const auto ends = trace.step_ends(graph);
  const auto losses = lost_compute_time(graph, trace);
  REQUIRE(losses.size() == 2);
  for (const EngineLoss& loss : losses) {
    CHECK(loss.window.value == Approx((ends[1] - ends[0]).value));
    CHECK(loss.busy.value > 0.0);
    CHECK(loss.total_lost().value > 0.0);
    CHECK((loss.busy + loss.total_lost()).value == Approx(loss.window.value).epsilon(1e-12));
  }
}

}  // namespace
}  // namespace offstage::scheduler
