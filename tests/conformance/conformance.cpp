#include "tests/conformance/conformance.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "platform/error.h"
#include "scheduler/manager.h"
#include "scheduler/policy.h"
#include "tests/support/builders.h"

namespace offstage::testing {
namespace {

using platform::Seconds;
using scheduler::Backend;
using scheduler::Completion;
using scheduler::TaskGraph;
using scheduler::TaskId;
using Order = std::vector<TaskId>;

constexpr double kMillisecond = 1e-3;

void expect(bool condition, const std::string& message) {
  if (!condition) throw std::runtime_error(message);
}

TestLoad load_of(GraphBuilder& builder) {
  std::vector<Seconds> durations;
  for (const auto& cost : builder.costs()) durations.push_back(cost.exclusive);
  return {builder.graph(), std::move(durations), std::nullopt};
}

std::string seconds(const Completion& c) {
  return fmt::format("task {} from {} s to {} s", c.task, c.start.value, c.end.value);
}

// Submits everything in the given order, runs to the end, and checks what holds for any run.
std::vector<Completion> run_all(Backend& backend, const TaskGraph& graph, const Order& order) {
  for (const TaskId task : order) backend.submit(task);
  std::vector<Completion> seen;
  backend.run([&](const Completion& c) {
    expect(backend.now() >= c.end, "now() is before the end of " + seconds(c));
    seen.push_back(c);
  });
  expect(seen.size() == order.size(),
         fmt::format("{} tasks submitted, {} completed", order.size(), seen.size()));
  std::vector<std::optional<Completion>> by_task(graph.size());
  Seconds latest;
  for (const Completion& c : seen) {
    expect(!by_task[c.task], fmt::format("task {} completed twice", c.task));
    by_task[c.task] = c;
    expect(c.start.value >= 0.0 && c.start <= c.end, "times out of order: " + seconds(c));
    expect(c.end >= latest, "delivered after a later one: " + seconds(c));
    latest = c.end;
    for (const TaskId predecessor : graph.predecessors(c.task)) {
      expect(by_task[predecessor] && by_task[predecessor]->end <= c.start,
             fmt::format("{} does not wait for task {}", seconds(c), predecessor));
    }
  }
  return seen;
}

// Tasks that share an engine: none starts before the one submitted earlier has ended.
void expect_in_order(const TaskGraph& graph, const Order& order,
                     const std::vector<Completion>& seen) {
  std::vector<Completion> by_task(graph.size());
  for (const Completion& c : seen) by_task[c.task] = c;
  std::vector<std::optional<TaskId>> last(graph.engines.size());
  for (const TaskId task : order) {
    for (const auto engine : graph.task_engines(task)) {
      if (last[engine]) {
        expect(by_task[*last[engine]].end <= by_task[task].start,
               fmt::format("{} overtakes {} on {}", seconds(by_task[task]),
                           seconds(by_task[*last[engine]]), graph.engines[engine].name));
      }
      last[engine] = task;
    }
  }
}

void runs_nothing(const BackendUnderTest& under_test) {
  GraphBuilder builder;
  const auto engine = builder.engine("engine");
  builder.task({engine}, {}, delay(kMillisecond));
  const auto backend = under_test.make(load_of(builder));
  run_all(*backend, builder.graph(), {});
}

void keeps_submission_order(const BackendUnderTest& under_test) {
  GraphBuilder builder;
  const auto engine = builder.engine("engine");
  for (int i = 0; i < 5; ++i) builder.task({engine}, {}, delay((5 - i) * kMillisecond));
  const auto backend = under_test.make(load_of(builder));
  const Order order{3, 0, 4, 2, 1};
  expect_in_order(builder.graph(), order, run_all(*backend, builder.graph(), order));
}

void waits_for_predecessors(const BackendUnderTest& under_test) {
  // A diamond over three engines, all submitted at once.
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b"), c = builder.engine("c");
  builder.task({a}, {}, delay(4 * kMillisecond));
  builder.task({b}, {0}, delay(3 * kMillisecond));
  builder.task({c}, {0}, delay(1 * kMillisecond));
  builder.task({a}, {1, 2}, delay(1 * kMillisecond));
  const auto backend = under_test.make(load_of(builder));
  run_all(*backend, builder.graph(), {0, 1, 2, 3});
}

void holds_every_engine(const BackendUnderTest& under_test) {
  // Tasks 1 and 4 hold both engines; the others one of them.
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  builder.task({a}, {}, delay(3 * kMillisecond));
  builder.task({a, b}, {}, delay(2 * kMillisecond));
  builder.task({b}, {}, delay(1 * kMillisecond));
  builder.task({a}, {}, delay(1 * kMillisecond));
  builder.task({b, a}, {}, delay(2 * kMillisecond));
  const auto backend = under_test.make(load_of(builder));
  const Order order{0, 1, 2, 3, 4};
  expect_in_order(builder.graph(), order, run_all(*backend, builder.graph(), order));
}

void blocks_behind_a_waiting_task(const BackendUnderTest& under_test) {
  // Task 2 could run at once, but was submitted to its engine after task 1, which waits for 0.
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  builder.task({a}, {}, delay(5 * kMillisecond));
  builder.task({b}, {0}, delay(1 * kMillisecond));
  builder.task({b}, {}, delay(1 * kMillisecond));
  const auto backend = under_test.make(load_of(builder));
  const Order order{0, 1, 2};
  expect_in_order(builder.graph(), order, run_all(*backend, builder.graph(), order));
}

void accepts_tasks_from_the_handler(const BackendUnderTest& under_test) {
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  constexpr TaskId kTasks = 20;
  builder.task({a}, {}, delay(kMillisecond));
  for (TaskId task = 1; task < kTasks; ++task) {
    builder.task({task % 2 == 0 ? a : b}, {task - 1}, delay(task % 3 * kMillisecond));
  }
  const auto backend = under_test.make(load_of(builder));
  TaskId next = 1;
  backend->submit(0);
  backend->run([&](const Completion& c) {
    expect(c.task + 1 == next, "unexpected " + seconds(c));
    if (next < kTasks)
      backend->submit(next++);
    else
      ++next;
  });
  expect(next == kTasks + 1, fmt::format("run() returned with {} tasks submitted", next));
}

void hands_on_what_the_handler_throws(const BackendUnderTest& under_test) {
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  builder.task({a}, {}, delay(1 * kMillisecond));
  builder.task({b}, {}, delay(5 * kMillisecond));
  builder.task({a}, {0}, delay(1 * kMillisecond));
  const auto backend = under_test.make(load_of(builder));
  for (const TaskId task : {0, 1, 2}) backend->submit(task);
  int calls = 0;
  std::string caught;
  try {
    backend->run([&](const Completion&) {
      ++calls;
      throw Error(ErrorCode::io, "the handler's own words");
    });
  } catch (const Error& error) {
    caught = error.what();
    expect(error.code() == ErrorCode::io, "another error code");
  }
  expect(caught == "the handler's own words", "run() threw: '" + caught + "'");
  expect(calls == 1, fmt::format("handler called {} times, though it threw", calls));
}

void hands_on_what_a_task_throws(const BackendUnderTest& under_test) {
  if (!under_test.tasks_can_fail) return;
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  builder.task({a}, {}, delay(1 * kMillisecond));
  builder.task({b}, {}, delay(4 * kMillisecond));
  builder.task({a}, {0}, delay(1 * kMillisecond));
  TestLoad load = load_of(builder);
  load.failing = 0;
  const auto backend = under_test.make(load);
  for (const TaskId task : {0, 1, 2}) backend->submit(task);
  bool failed = false;
  try {
    backend->run([&](const Completion& c) {
      expect(c.task == 1, "a task completed that failed or waits for one that did: " + seconds(c));
    });
  } catch (const Error& error) {
    failed = error.code() == ErrorCode::device;
  }
  expect(failed, "the task's error did not come out of run()");
}

void reports_what_can_never_start(const BackendUnderTest& under_test) {
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  builder.task({a}, {}, delay(kMillisecond));
  builder.task({b}, {0}, delay(kMillisecond));
  const auto backend = under_test.make(load_of(builder));
  backend->submit(1);  // and never task 0
  bool reported = false;
  try {
    backend->run([](const Completion& c) { expect(false, "unexpected " + seconds(c)); });
  } catch (const Error& error) {
    reported = error.code() == ErrorCode::device;
  }
  expect(reported, "no Error(device) for a task whose predecessor was never submitted");
}

// A policy that writes down what it was told and what it answered.
class RecordedPolicy final : public scheduler::Policy {
 public:
  explicit RecordedPolicy(scheduler::Policy& policy) : policy_(policy) {}
  void start(std::vector<TaskId>& submit) override {
    policy_.start(submit);
    answers_.push_back(submit);
  }
  void step(const Completion& completion, platform::Seconds now,
            std::vector<TaskId>& submit) override {
    policy_.step(completion, now, submit);
    completions_.push_back(completion);
    answers_.push_back(submit);
  }
  // Whether another one answers alike when it is told the same.
  bool is_repeated_by(scheduler::Policy& other) const {
    std::vector<TaskId> submit;
    other.start(submit);
    if (submit != answers_.front()) return false;
    for (std::size_t i = 0; i < completions_.size(); ++i) {
      submit.clear();
      other.step(completions_[i], completions_[i].end, submit);
      if (submit != answers_[i + 1]) return false;
    }
    return true;
  }

 private:
  scheduler::Policy& policy_;
  std::vector<Completion> completions_;
  std::vector<std::vector<TaskId>> answers_;  // to the start, then to each completion
};

// A random graph, its durations cut to whole milliseconds below 4. What the policy decided on this
// backend, with its threads and its clock, it decides again when only told the completions.
void carries_out(scheduler::PolicyKind policy, const BackendUnderTest& under_test) {
  RandomCase random = random_case(7);
  TestLoad load = load_of(random.graph);
  for (auto& duration : load.durations) {
    duration = {static_cast<int>(duration.value * 40) * kMillisecond};
  }
  const auto backend = under_test.make(load);
  const scheduler::PolicyInput input{load.graph, load.durations, 2};
  const auto decide = scheduler::make_policy(policy, input);
  RecordedPolicy recorded(*decide);
  const auto trace = scheduler::Manager(load.graph, *backend, recorded).run();
  expect(recorded.is_repeated_by(*scheduler::make_policy(policy, input)),
         "the same completions led to other decisions");
  for (TaskId task = 0; task < load.graph.size(); ++task) {
    const auto& mine = trace.tasks[task];
    expect(mine.start <= mine.end, fmt::format("task {} ends before it starts", task));
    for (const TaskId predecessor : load.graph.predecessors(task)) {
      expect(trace.tasks[predecessor].end <= mine.start,
             fmt::format("task {} does not wait for {}", task, predecessor));
    }
  }
}

}  // namespace

std::vector<ConformanceCheck> conformance_checks() {
  using scheduler::PolicyKind;
  const auto with = [](PolicyKind policy) {
    return [policy](const BackendUnderTest& under_test) { carries_out(policy, under_test); };
  };
  return {
      {"a run of nothing returns", runs_nothing},
      {"an engine runs one task at a time, in submission order", keeps_submission_order},
      {"a task waits for its predecessors, though submitted with them", waits_for_predecessors},
      {"a task with several engines holds each of them", holds_every_engine},
      {"a task that waits holds up what was submitted after it", blocks_behind_a_waiting_task},
      {"the handler may submit", accepts_tasks_from_the_handler},
      {"what the handler throws comes out of run", hands_on_what_the_handler_throws},
      {"what a task throws comes out of run", hands_on_what_a_task_throws},
      {"a task that can never start is an error", reports_what_can_never_start},
      {"a random graph under fifo", with(PolicyKind::fifo)},
      {"a random graph under planned", with(PolicyKind::planned)},
      {"a random graph under critical_path", with(PolicyKind::critical_path)},
      {"a random graph under heft", with(PolicyKind::heft)},
      {"a random graph under resource_aware", with(PolicyKind::resource_aware)},
  };
}

}  // namespace offstage::testing
