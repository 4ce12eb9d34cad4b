#include "calibration/hand_over.h"

#include <array>
#include <vector>

#include "exec/cpu_backend.h"
#include "scheduler/manager.h"
#include "scheduler/policy.h"
#include "scheduler/task_graph.h"

namespace offstage::calibration {

using scheduler::EngineId;
using scheduler::TaskGraph;
using scheduler::TaskId;

namespace {

constexpr int kTasks = 500;
constexpr int kRuns = 9;

TaskGraph chain() {
  TaskGraph graph;
  graph.engines = {{"a", scheduler::EngineKind::compute, 0}, {"b", scheduler::EngineKind::h2d, 0}};
  graph.steps = 1;
  for (int i = 0; i < kTasks; ++i) {
    const std::array<EngineId, 1> engine{static_cast<EngineId>(i % 2)};
    const std::vector<TaskId> before =
        i > 0 ? std::vector{static_cast<TaskId>(i - 1)} : std::vector<TaskId>{};
    graph.add({.kind = scheduler::TaskKind::forward, .bytes = {}}, engine, before, {});
  }
  graph.finish();
  return graph;
}

}  // namespace

Measurement measure_hand_over() {
  const TaskGraph graph = chain();
  const std::vector<platform::Seconds> lone_times(graph.size());
  std::vector<double> samples;
  for (int run = 0; run < kRuns; ++run) {
    exec::CpuBackend backend(graph, [](TaskId) {}, {});
    const auto policy =
        make_policy(scheduler::PolicyKind::planned, {.graph = graph, .lone_times = lone_times});
    const auto trace = scheduler::Manager(graph, backend, *policy).run();
    samples.push_back(trace.tasks.back().end.value / kTasks);
  }
  return {"hand-over of a task", "s", summarise(std::move(samples))};
}

}  // namespace offstage::calibration
