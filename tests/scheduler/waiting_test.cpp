#include "scheduler/waiting.h"

#include <vector>

#include <catch2/catch.hpp>

namespace offstage::scheduler {
namespace {

// Three steps on one GPU, a fetch and a forward each; the fetches run ahead.
//
//   h2d      f0 0-2 | f1 2-4 | f2 4-6
//   compute          F0 2-5    | F1 5-9 | F2 9-12
struct ThreeSteps {
  ThreeSteps() {
    graph.engines = {{"gpu0.compute", EngineKind::compute, 0}, {"gpu0.h2d", EngineKind::h2d, 0}};
    const std::vector<Interval> fetches{{{0}, {2}}, {{2}, {4}}, {{4}, {6}}};
    const std::vector<Interval> forwards{{{2}, {5}}, {{5}, {9}}, {{9}, {12}}};
    for (std::uint32_t step = 0; step < 3; ++step) {
      Task task;
      task.step = step;
      task.kind = TaskKind::fetch;
      const TaskId fetch = graph.add(task, std::vector<EngineId>{1}, {}, {});
      task.kind = TaskKind::forward;
      graph.add(task, std::vector<EngineId>{0}, std::vector<TaskId>{fetch}, {});
      trace.tasks.push_back(fetches[step]);
      trace.tasks.push_back(forwards[step]);
    }
    graph.steps = 3;
    graph.finish();
  }
  TaskGraph graph;
  Trace trace;
};

TEST_CASE("a task waits for the predecessor or the task on its engine that ended last",
          "[scheduler][unit]") {
  const ThreeSteps run;
  const Waiting waiting(run.graph, run.trace);
  CHECK_FALSE(waiting.cause_of(0));
  CHECK(waiting.cause_of(1) == TaskId{0});  // F0 for its weights
  CHECK(waiting.cause_of(2) == TaskId{0});  // f1 for the engine
  CHECK(waiting.cause_of(3) == TaskId{1});  // F1: weights at 4, the engine at 5
}

TEST_CASE("the chain of the middle step goes back to what ran when it began", "[scheduler][unit]") {
  // The second step lasts from 5 to 9: F1 ended it, F1 started at 5 and waited for nothing inside.
  const ThreeSteps run;
  const Waiting waiting(run.graph, run.trace);
  CHECK(waiting.middle_step().start == platform::Seconds{5});
  CHECK(waiting.middle_step().end == platform::Seconds{9});
  CHECK(waiting.last_chain() == std::vector<TaskId>{3});
}

TEST_CASE("the chain of a single step begins with its first task", "[scheduler][unit]") {
  // fetch 0-2, a forward 2-2 that takes no time, then one 3-7: each waited for the one before it.
  TaskGraph graph;
  graph.engines = {{"gpu0.compute", EngineKind::compute, 0}, {"gpu0.h2d", EngineKind::h2d, 0}};
  Task task;
  task.kind = TaskKind::fetch;
  const TaskId fetch = graph.add(task, std::vector<EngineId>{1}, {}, {});
  task.kind = TaskKind::forward;
  const TaskId first = graph.add(task, std::vector<EngineId>{0}, std::vector<TaskId>{fetch}, {});
  const TaskId second = graph.add(task, std::vector<EngineId>{0}, {}, {});
  graph.steps = 1;
  graph.finish();
  Trace trace;
  trace.tasks = {{{0}, {2}}, {{2}, {2}}, {{3}, {7}}};
  CHECK(Waiting(graph, trace).last_chain() == std::vector<TaskId>{fetch, first, second});
}

}  // namespace
}  // namespace offstage::scheduler
