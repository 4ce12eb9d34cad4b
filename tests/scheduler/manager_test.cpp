#include "scheduler/manager.h"

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/error.h"
#include "scheduler/policy.h"
#include "tests/support/builders.h"
#include "tests/support/death.h"
#include "tests/support/fake_backend.h"

namespace offstage::scheduler {
namespace {

using platform::Seconds;
using testing::delay;
using testing::GraphBuilder;
using Tasks = std::vector<TaskId>;

// Submits what it is told at the start, and nothing afterwards.
class FixedPolicy final : public Policy {
 public:
  explicit FixedPolicy(Tasks tasks) : tasks_(std::move(tasks)) {}
  void start(Tasks& submit) override { submit = tasks_; }
  void step(const Completion&, Seconds, Tasks&) override {}

 private:
  Tasks tasks_;
};

Trace run(GraphBuilder& builder, const Tasks& order, const RunObserver& observer = {}) {
  std::vector<Seconds> durations;
  for (const auto& cost : builder.costs()) durations.push_back(cost.exclusive);
  testing::FakeBackend backend(builder.graph(), durations);
  FixedPolicy policy(order);
  return Manager(builder.graph(), backend, policy).run(observer);
}

constexpr bool kAcquires = true, kReleases = true;

SlotUse use(SlotId slot, bool acquires, bool releases) {
  return {slot, SlotRole::weights, acquires, releases};
}

TEST_CASE("a trace tells when each task ran", "[scheduler][unit]") {
  // 0 on a: 0 to 2 s. 1 on b, after 0: 2 to 5 s. 2 on a, behind 0: 2 to 6 s.
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  builder.task({a}, {}, delay(2));
  builder.task({b}, {0}, delay(3));
  builder.task({a}, {}, delay(4));
  const Trace trace = run(builder, {0, 1, 2});
  REQUIRE(trace.tasks.size() == 3);
  CHECK(trace.tasks[0].start == Seconds{0.0});
  CHECK(trace.tasks[0].end == Seconds{2.0});
  CHECK(trace.tasks[1].start == Seconds{2.0});
  CHECK(trace.tasks[1].end == Seconds{5.0});
  CHECK(trace.tasks[2].start == Seconds{2.0});
  CHECK(trace.tasks[2].end == Seconds{6.0});
}

TEST_CASE("observers see completions in order and the end of each step", "[scheduler][unit]") {
  // Step 0 ends at 3 s with task 1, step 1 at 4 s with task 2 on the other engine.
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  builder.task({a}, {}, delay(1), {}, 0);
  builder.task({a}, {}, delay(2), {}, 0);
  builder.task({b}, {}, delay(4), {}, 1);
  Tasks seen;
  std::vector<std::pair<std::uint32_t, double>> steps;
  RunObserver observer;
  observer.on_completion = [&](const Completion& c) { seen.push_back(c.task); };
  observer.on_step_end = [&](std::uint32_t step, Seconds end) {
    steps.push_back({step, end.value});
  };
  run(builder, {0, 1, 2}, observer);
  CHECK(seen == Tasks{0, 1, 2});
  CHECK(steps == std::vector<std::pair<std::uint32_t, double>>{{0, 3.0}, {1, 4.0}});
}

TEST_CASE("an observer may end the run", "[scheduler][unit]") {
  GraphBuilder builder;
  const auto a = builder.engine("a");
  builder.task({a}, {}, delay(1));
  builder.task({a}, {}, delay(1));
  RunObserver observer;
  observer.on_completion = [](const Completion&) { throw std::runtime_error("enough"); };
  CHECK_THROWS_WITH(run(builder, {0, 1}, observer), "enough");
}

TEST_CASE("a policy that forgets tasks is an error that names them", "[scheduler][unit]") {
  GraphBuilder builder;
  const auto a = builder.engine("a");
  builder.task({a}, {}, delay(1));
  builder.task({a}, {}, delay(1));
  CHECK_THROWS_WITH(run(builder, {0}),
                    "the run ended with 1 of 2 tasks left: forward submodel 0 micro-batch 1 gpu0 "
                    "step 0 (never submitted)");
}

TEST_CASE("a policy that submits twice or too early is a broken invariant", "[scheduler][unit]") {
  GraphBuilder builder;
  const auto a = builder.engine("a");
  builder.task({a}, {}, delay(1));
  builder.task({a}, {0}, delay(1));
  builder.graph();
  CHECK_THAT(testing::last_words([&] { run(builder, {0, 0}); }), Catch::Contains("twice"));
  CHECK_THAT(testing::last_words([&] { run(builder, {1, 0}); }), Catch::Contains("before"));
}

TEST_CASE("a slot passes from one occupant to the next", "[scheduler][unit]") {
  // Occupant 1: acquired by task 0, released by 1 and 2. Occupant 2: task 3 alone. Occupant 3
  // stays.
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  const auto slot = builder.slot();
  builder.task({a}, {}, delay(1), {use(slot, kAcquires, false)});
  builder.task({a}, {0}, delay(1), {use(slot, false, kReleases)});
  builder.task({b}, {0}, delay(5), {use(slot, false, kReleases)});
  builder.task({a}, {1, 2}, delay(1), {use(slot, kAcquires, kReleases)});
  builder.task({a}, {3}, delay(1), {use(slot, kAcquires, false)});
  CHECK_NOTHROW(run(builder, {0, 1, 2, 3, 4}));
}

TEST_CASE("a slot acquired before every reader is done is a broken invariant",
          "[scheduler][unit]") {
  // Task 3 waits for one of the two readers only: the other one ends at 6 s.
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  const auto slot = builder.slot();
  builder.task({a}, {}, delay(1), {use(slot, kAcquires, false)});
  builder.task({a}, {0}, delay(1), {use(slot, false, kReleases)});
  builder.task({b}, {0}, delay(5), {use(slot, false, kReleases)});
  builder.task({a}, {1}, delay(1), {use(slot, kAcquires, kReleases)});
  builder.graph();
  CHECK_THAT(testing::last_words([&] {
               run(builder, {0, 1, 2, 3});
             }),
             Catch::Contains("slot acquired while occupied"));
}

TEST_CASE("a slot acquired by a task that began too early is found when that task ends later",
          "[scheduler][unit]") {
  // Task 2 runs from 0 to 9 s, the occupant before it until 2 s.
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  const auto slot = builder.slot();
  builder.task({a}, {}, delay(1), {use(slot, kAcquires, false)});
  builder.task({a}, {0}, delay(1), {use(slot, false, kReleases)});
  builder.task({b}, {}, delay(9), {use(slot, kAcquires, kReleases)});
  builder.graph();
  CHECK_THAT(testing::last_words([&] {
               run(builder, {0, 1, 2});
             }),
             Catch::Contains("slot acquired while occupied"));
}

TEST_CASE("a slot that nobody releases can't have a second occupant", "[scheduler][unit]") {
  GraphBuilder builder;
  const auto a = builder.engine("a");
  const auto slot = builder.slot();
  builder.task({a}, {}, delay(1), {use(slot, kAcquires, false)});
  builder.task({a}, {0}, delay(1), {use(slot, kAcquires, false)});
  builder.graph();
  CHECK_THAT(testing::last_words([&] {
               run(builder, {0, 1});
             }),
             Catch::Contains("slot acquired while occupied"));
}

TEST_CASE("a steady step is the median of all steps but the first and the last",
          "[scheduler][unit]") {
  // Step ends at 10, 13, 17, 19, 24 s: distances 3, 4, 2, of which the median is 3, and 5, of the
  // last step.
  GraphBuilder builder;
  const auto a = builder.engine("a");
  const double lengths[] = {10, 3, 4, 2, 5};
  for (std::uint32_t step = 0; step < 5; ++step) {
    builder.task({a}, {}, delay(lengths[step]), {}, step);
  }
  const Trace trace = run(builder, {0, 1, 2, 3, 4});
  CHECK(steady_step(builder.graph(), trace) == Seconds{3.0});
}

TEST_CASE("a steady step between two is their mean, of two steps the second, of one its end",
          "[scheduler][unit]") {
  // Ends at 10, 13, 17 and 19 s: between the first and the last step lie 3 and 4 s.
  GraphBuilder four, two, one;
  const double lengths[] = {10, 3, 4, 2};
  const auto a = four.engine("a"), b = two.engine("a");
  for (std::uint32_t step = 0; step < 4; ++step) {
    four.task({a}, {}, delay(lengths[step]), {}, step);
  }
  for (std::uint32_t step = 0; step < 2; ++step) {
    two.task({b}, {}, delay(lengths[step]), {}, step);
  }
  CHECK(steady_step(four.graph(), run(four, {0, 1, 2, 3})) == Seconds{3.5});
  CHECK(steady_step(two.graph(), run(two, {0, 1})) == Seconds{3.0});
  one.task({one.engine("a")}, {}, delay(7));
  CHECK(steady_step(one.graph(), run(one, {0})) == Seconds{7.0});
}

}  // namespace
}  // namespace offstage::scheduler
