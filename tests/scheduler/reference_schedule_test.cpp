#include "scheduler/reference_schedule.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/error.h"
#include "scheduler/cost_model.h"
#include "scheduler/manager.h"
#include "scheduler/plan.h"
#include "scheduler/policy.h"
#include "scheduler/step_graph.h"
#include "tests/support/builders.h"
#include "tests/support/fake_backend.h"
#include "tests/support/random_strategy.h"
#include "tests/support/small_machine.h"

namespace offstage::scheduler {
namespace {

using platform::Seconds;
using testing::delay;
using testing::flow;
using testing::GraphBuilder;
using testing::MachineBuilder;

constexpr std::int64_t kPlenty = 1'000'000;

std::vector<Seconds> times_of(GraphBuilder& builder) {
  std::vector<Seconds> times;
  for (const auto& cost : builder.costs()) times.push_back(cost.exclusive);
  return times;
}

TEST_CASE("the shortest schedule may leave an engine idle though a task is ready",
          "[scheduler][unit]") {
  // Engine a: task 0 of 4 s, ready at once, and task 2 of 1 s, ready after 1 s of task 1 on b; task
  // 3 of 5 s on b waits for task 2. Starting task 0 at once makes 4 + 1 + 5 = 10 s. Waiting for
  // task 2 makes 1 + 1 + 5 = 7 s, with task 0 beside task 3.
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  builder.task({a}, {}, delay(4));
  builder.task({b}, {}, delay(1));
  builder.task({a}, {1}, delay(1));
  builder.task({b}, {2}, delay(5));
  const auto times = times_of(builder);
  const auto reference = reference_schedule(builder.graph(), times, nullptr, kPlenty);
  CHECK(reference.complete);
  CHECK(reference.shortest.value == 7.0);
  CHECK(reference.lower_bound.value == 7.0);
  CHECK(reference.order.size() == 4);
  CHECK(std::ranges::find(reference.order, 2) < std::ranges::find(reference.order, 0));
}

TEST_CASE("a task that holds two engines is waited for on both", "[scheduler][unit]") {
  // Task 0 of 3 s on a, task 1 of 2 s on b, task 2 of 1 s on both, and task 3 of 4 s on b, all
  // ready. b works 2 + 1 + 4 = 7 s; with task 2 between tasks 1 and 3 it would wait for a until 3
  // s. In the order 1, 3, 2 or 3, 1, 2 nothing waits: 7 s.
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  builder.task({a}, {}, delay(3));
  builder.task({b}, {}, delay(2));
  builder.task({a, b}, {}, delay(1));
  builder.task({b}, {}, delay(4));
  const auto reference = reference_schedule(builder.graph(), times_of(builder), nullptr, kPlenty);
  CHECK(reference.complete);
  CHECK(reference.shortest.value == 7.0);
}

TEST_CASE("a shared link is a bound that engines and chains do not give", "[scheduler][unit]") {
  // Two copies of 30 bytes on engines of their own over one link of 10 B/s: 3 s each alone, 6 s
  // together, and 1 s for what follows the second.
  MachineBuilder m;
  const auto route = m.route("h2d", {m.link("uplink", 10.0)});
  GraphBuilder builder;
  builder.task({builder.engine("gpu0.h2d")}, {}, flow(route, 30.0));
  builder.task({builder.engine("gpu1.h2d")}, {}, flow(route, 30.0));
  builder.task({builder.engine("gpu0.compute")}, {0, 1}, delay(1.0));
  const auto known = known_costs(m.machine(), builder.costs());
  const auto reference =
      reference_schedule(builder.graph(), known.lone_times, &known.links, kPlenty);
  CHECK(reference.lower_bound.value == Approx(7.0));
  CHECK(reference.shortest.value == Approx(4.0));
}

TEST_CASE("a search that is cut short gives a bound and says so", "[scheduler][unit]") {
  // Four tasks of 2, 3, 4 and 5 s on a, each followed by its like on b. b can't begin before 2 s
  // and works 14 s: 16 s at the least. In truth every order takes 19 s: what goes before the
  // longest task does so on a, what goes after it on b, and the task itself runs on both, 14 + 5 s.
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  for (const double seconds : {5.0, 4.0, 3.0, 2.0}) builder.task({a}, {}, delay(seconds));
  for (const std::uint32_t first : {0, 1, 2, 3}) {
    builder.task({b}, {first}, delay(5.0 - first));
  }
  const auto times = times_of(builder);
  const auto cut = reference_schedule(builder.graph(), times, nullptr, 1);
  CHECK_FALSE(cut.complete);
  CHECK(cut.lower_bound.value == 16.0);
  const auto whole = reference_schedule(builder.graph(), times, nullptr, kPlenty);
  CHECK(whole.complete);
  CHECK(whole.shortest.value == 19.0);
}

TEST_CASE("a graph beyond the search's size is an error", "[scheduler][unit]") {
  GraphBuilder builder;
  const auto a = builder.engine("a");
  for (int i = 0; i < 2001; ++i) builder.task({a}, {}, delay(1));
  CHECK_THROWS_WITH(reference_schedule(builder.graph(), times_of(builder), nullptr, kPlenty),
                    Catch::Contains("up to 2000 tasks") && Catch::Contains("2001"));
}

// A step graph of a random small plan; kinds of work are faster or slower by random factors, so
// that now one resource is scarce and now another.
struct SmallStep {
  TaskGraph graph;
  std::vector<Seconds> times;
};

SmallStep draw_step(std::uint32_t seed) {
  Draw draw(seed);
  auto machine = small_machine();
  if (draw.one_in(3)) machine.gpus.resize(1);
  auto workload = small_workload(draw(1, 3), draw.one_in(2));
  workload.global_batch = draw(1, 2) * 2;
  const Plan plan = make_plan(machine, workload, draw_strategy(draw, machine, workload));
  SmallStep step{make_step_graph(plan, static_cast<std::uint32_t>(draw(1, 2))), {}};
  std::vector<double> factors(kTaskKinds);
  for (double& factor : factors) factor = 0.25 * static_cast<double>(draw(1, 12));
  const auto costs = make_costs(plan, exact_profile(), step.graph);
  for (TaskId task = 0; task < step.graph.size(); ++task) {
    const auto kind = static_cast<std::size_t>(step.graph.tasks[task].kind);
    step.times.push_back(lone_time(machine, costs[task]) * factors[kind]);
  }
  return step;
}

Seconds run_length(const SmallStep& step, PolicyKind kind) {
  testing::FakeBackend backend(step.graph, step.times);
  const auto policy = make_policy(kind, {step.graph, step.times, 4});
  const auto ends = Manager(step.graph, backend, *policy).run().step_ends(step.graph);
  return *std::max_element(ends.begin(), ends.end());
}

TEST_CASE("resource_aware stays within 3 % of the optimum, and nothing gets below it",
          "[scheduler][unit][slow]") {
  constexpr std::uint32_t kSeeds = 40;
  constexpr std::size_t kSearchable = 60;  // tasks
  int solved = 0;
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    INFO("seed " << seed);
    const SmallStep step = draw_step(seed);
    if (step.graph.size() > kSearchable) continue;
    const auto reference = reference_schedule(step.graph, step.times, nullptr, 5'000);
    if (!reference.complete) continue;
    ++solved;
    for (const auto& name : policy_names()) {
      INFO(name);
      const Seconds length = run_length(step, policy_from_string(name));
      CHECK(length.value >= reference.shortest.value * (1.0 - 1e-9));
      if (name == "resource_aware") CHECK(length.value <= reference.shortest.value * 1.03);
    }
  }
  // Most are small enough; if none were, nothing would have been tested.
  CHECK(solved >= 15);
}

}  // namespace
}  // namespace offstage::scheduler
