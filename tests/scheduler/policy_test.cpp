#include "scheduler/policy.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <catch2/catch.hpp>

#include "scheduler/manager.h"
#include "scheduler/policies/upward_rank.h"
#include "tests/support/builders.h"
#include "tests/support/death.h"
#include "tests/support/fake_backend.h"

namespace offstage::scheduler {
namespace {

using platform::Seconds;
using testing::delay;
using testing::GraphBuilder;
using Tasks = std::vector<TaskId>;

// A graph, its lone times and a policy over both.
class Decisions {
 public:
  Decisions(GraphBuilder& builder, PolicyKind kind, int submit_ahead) {
    for (const auto& cost : builder.costs()) lone_times_.push_back(cost.exclusive);
    policy_ = make_policy(kind, {builder.graph(), lone_times_, submit_ahead});
  }
  Tasks start() {
    Tasks submit;
    policy_->start(submit);
    return submit;
  }
  Tasks completed(TaskId task) {
    Tasks submit;
    policy_->step({task, {}, {}}, {}, submit);
    return submit;
  }

 private:
  std::vector<Seconds> lone_times_;
  std::unique_ptr<Policy> policy_;
};

// Tasks 0 to 3 on one engine, all ready, of 1, 3, 2 and 3 s; task 4 on another waits for task 2.
GraphBuilder four_and_one() {
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  for (const double seconds : {1.0, 3.0, 2.0, 3.0}) builder.task({a}, {}, delay(seconds));
  builder.task({b}, {2}, delay(5.0));
  return builder;
}

TEST_CASE("upward rank is the longest way to the end", "[scheduler][unit]") {
  // 3: 4 s. 1: 2 + 4 = 6. 2: 7 + 4 = 11. 0: 1 + max(6, 11) = 12.
  GraphBuilder builder;
  const auto a = builder.engine("a");
  builder.task({a}, {}, delay(1));
  builder.task({a}, {0}, delay(2));
  builder.task({a}, {0}, delay(7));
  builder.task({a}, {1, 2}, delay(4));
  const auto ranks = upward_ranks(builder.graph(), {{1.0}, {2.0}, {7.0}, {4.0}});
  CHECK(ranks == std::vector<Seconds>{{12.0}, {6.0}, {11.0}, {4.0}});
}

TEST_CASE("fifo submits ready tasks in the order they became ready", "[scheduler][unit]") {
  auto builder = four_and_one();
  Decisions decisions(builder, PolicyKind::fifo, 2);
  CHECK(decisions.start() == Tasks{0, 1});
  CHECK(decisions.completed(0) == Tasks{2});
  CHECK(decisions.completed(1) == Tasks{3});
  CHECK(decisions.completed(2) == Tasks{4});
  CHECK(decisions.completed(3).empty());
}

TEST_CASE("critical_path submits the ready task with the longest way to the end first",
          "[scheduler][unit]") {
  // Ranks: 0: 1 s, 1: 3 s, 2: 2 + 5 = 7 s, 3: 3 s (a tie with 1, which goes first by id).
  auto builder = four_and_one();
  Decisions decisions(builder, PolicyKind::critical_path, 1);
  CHECK(decisions.start() == Tasks{2});
  CHECK(decisions.completed(2) == Tasks{1, 4});
  CHECK(decisions.completed(1) == Tasks{3});
  CHECK(decisions.completed(3) == Tasks{0});
}

TEST_CASE("heft puts a short task into the gap that a better one leaves", "[scheduler][unit]") {
  // Ranks: task 0 on b 2 + 4 = 6 s, task 1 on a 4 s, task 2 on a 1 s. Task 0 goes first, task 1
  // follows it from 2 to 6 s on a; task 2 fits in before it, from 0 to 1 s. A list by rank would
  // give the same here; one where task 2 had to wait for its turn would run it last.
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  builder.task({b}, {}, delay(2));
  builder.task({a}, {0}, delay(4));
  builder.task({a}, {}, delay(1));
  Decisions decisions(builder, PolicyKind::heft, 1);
  // Engine a is asked first.
  CHECK(decisions.start() == Tasks{2, 0});
  CHECK(decisions.completed(2) == Tasks{1});
}

TEST_CASE("resource_aware waits for a task that is worth it", "[scheduler][unit]") {
  // As in reference_schedule_test.cpp: task 0 of 4 s could start on a at once, but then task 2, of
  // 1 s, which task 3 of 5 s waits for, comes at 4 s: 10 s in all, against 7 s.
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  builder.task({a}, {}, delay(4));
  builder.task({b}, {}, delay(1));
  builder.task({a}, {1}, delay(1));
  builder.task({b}, {2}, delay(5));
  Decisions decisions(builder, PolicyKind::resource_aware, 1);
  // Task 2 is first in a's line: it may be submitted before task 1 is complete.
  CHECK(decisions.start() == Tasks{1, 2});
  CHECK(decisions.completed(1) == Tasks{3});
  CHECK(decisions.completed(2) == Tasks{0});
}

TEST_CASE("resource_aware submits ahead what waits for its own engine only", "[scheduler][unit]") {
  // Tasks 0, 1 and 2 on one engine; 1 and 2 wait for 0, the copy 3 for 1. The copy makes task 1
  // more urgent than task 2. All three stand in one line; the copy waits for the completion of
  // task 1.
  GraphBuilder builder;
  const auto compute = builder.engine("gpu0.compute"), copy = builder.engine("gpu0.h2d");
  builder.task({compute}, {}, delay(1));
  builder.task({compute}, {0}, delay(1));
  builder.task({compute}, {0}, delay(1));
  builder.task({copy}, {1}, delay(4));
  Decisions decisions(builder, PolicyKind::resource_aware, 4);
  CHECK(decisions.start() == Tasks{0, 1, 2});
  CHECK(decisions.completed(0).empty());
  CHECK(decisions.completed(1) == Tasks{3});
}

TEST_CASE("planned submits ahead of completion, in program order, up to its limit",
          "[scheduler][unit]") {
  auto builder = four_and_one();
  Decisions decisions(builder, PolicyKind::planned, 3);
  // Task 4 may go as soon as task 2 is submitted.
  CHECK(decisions.start() == Tasks{0, 1, 2, 4});
  CHECK(decisions.completed(0) == Tasks{3});
}

TEST_CASE("planned holds a task back until all its engines reach it", "[scheduler][unit]") {
  // Task 2 holds both engines; engine a takes one task at a time.
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  builder.task({a}, {}, delay(1));
  builder.task({a}, {}, delay(1));
  builder.task({a, b}, {}, delay(1));
  builder.task({b}, {}, delay(1));
  Decisions decisions(builder, PolicyKind::planned, 1);
  CHECK(decisions.start() == Tasks{0});
  CHECK(decisions.completed(0) == Tasks{1});
  CHECK(decisions.completed(1) == Tasks{2});
  CHECK(decisions.completed(2) == Tasks{3});
}

TEST_CASE("a ready task that needs a full engine does not hold up the others",
          "[scheduler][unit]") {
  // Task 1 needs a (full) and b; task 2 needs b only.
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  builder.task({a}, {}, delay(1));
  builder.task({b, a}, {}, delay(1));
  builder.task({b}, {}, delay(1));
  Decisions decisions(builder, PolicyKind::fifo, 1);
  CHECK(decisions.start() == Tasks{0, 2});
  CHECK(decisions.completed(0).empty());
  CHECK(decisions.completed(2) == Tasks{1});
}

TEST_CASE("a policy that may have nothing in flight is a broken invariant", "[scheduler][unit]") {
  auto builder = four_and_one();
  CHECK_THAT(testing::last_words([&] { Decisions(builder, PolicyKind::fifo, 0); }),
             Catch::Contains("submit_ahead must be positive"));
}

// Counts tasks in flight on each engine, seen from the backend.
class WatchedPolicy final : public Policy {
 public:
  WatchedPolicy(Policy& policy, const TaskGraph& graph)
      : policy_(policy), graph_(graph), in_flight_(graph.engines.size()) {}
  void start(Tasks& submit) override {
    policy_.start(submit);
    count(submit);
  }
  void step(const Completion& completion, Seconds now, Tasks& submit) override {
    for (const auto engine : graph_.task_engines(completion.task)) --in_flight_[engine];
    policy_.step(completion, now, submit);
    count(submit);
  }
  int most_in_flight() const { return most_; }

 private:
  void count(const Tasks& submit) {
    for (const TaskId task : submit) {
      for (const auto engine : graph_.task_engines(task)) {
        most_ = std::max(most_, ++in_flight_[engine]);
      }
    }
  }
  Policy& policy_;
  const TaskGraph& graph_;
  std::vector<int> in_flight_;
  int most_ = 0;
};

TEST_CASE("every policy finishes random graphs within its limit, twice alike",
          "[scheduler][unit]") {
  for (const auto& name : policy_names()) {
    const auto kind = policy_from_string(name);
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
      INFO("policy " << static_cast<int>(kind) << ", seed " << seed);
      auto random = testing::random_case(seed);
      const auto& graph = random.graph.graph();
      std::vector<Seconds> durations;
      for (const auto& cost : random.graph.costs()) durations.push_back(cost.exclusive);
      const int submit_ahead = static_cast<int>(1 + seed % 3);
      std::vector<Tasks> orders;
      for (int run = 0; run < 2; ++run) {
        testing::FakeBackend backend(graph, durations);
        const auto policy = make_policy(kind, {graph, durations, submit_ahead});
        WatchedPolicy watched(*policy, graph);
        Manager(graph, backend, watched).run();
        CHECK(watched.most_in_flight() <= submit_ahead);
        orders.push_back(backend.submitted());
      }
      CHECK(orders[0] == orders[1]);
    }
  }
}

TEST_CASE("planned gives the timeline of program order, however far it submits ahead",
          "[scheduler][unit]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    auto random = testing::random_case(seed);
    const auto& graph = random.graph.graph();
    std::vector<Seconds> durations;
    for (const auto& cost : random.graph.costs()) durations.push_back(cost.exclusive);
    std::vector<Trace> traces;
    for (const int submit_ahead : {1, 2, 1000}) {
      testing::FakeBackend backend(graph, durations);
      const auto policy = make_policy(PolicyKind::planned, {graph, durations, submit_ahead});
      traces.push_back(Manager(graph, backend, *policy).run());
    }
    for (TaskId task = 0; task < graph.size(); ++task) {
      CHECK(traces[0].tasks[task].start == traces[2].tasks[task].start);
      CHECK(traces[1].tasks[task].start == traces[2].tasks[task].start);
    }
  }
}

}  // namespace
}  // namespace offstage::scheduler
