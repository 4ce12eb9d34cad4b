#include "scheduler/waiting.h"

#include <algorithm>
#include <tuple>

namespace offstage::scheduler {
namespace {

// Of tasks as they ran: one that takes no time stands before what starts when it ends.
std::tuple<double, double, TaskId> place_in_time(const Trace& trace, TaskId task) {
  return {trace.tasks[task].start.value, trace.tasks[task].end.value, task};
}

}  // namespace

Waiting::Waiting(const TaskGraph& graph, const Trace& trace)
    : graph_(graph), trace_(trace), order_(graph.engines.size()), before_(graph.size()) {
  for (TaskId task = 0; task < graph.size(); ++task) {
    for (const EngineId engine : graph.task_engines(task)) order_[engine].push_back(task);
  }
  for (auto& tasks : order_) {
    std::ranges::sort(tasks, [&trace](TaskId a, TaskId b) {
      return place_in_time(trace, a) < place_in_time(trace, b);
    });
    for (std::size_t i = 1; i < tasks.size(); ++i) before_[tasks[i]].push_back(tasks[i - 1]);
  }
  const auto ends = trace.step_ends(graph);
  const std::size_t last = ends.size() >= 3 ? ends.size() - 2 : ends.size() - 1;
  window_ = {last == 0 ? platform::Seconds{} : ends[last - 1], ends[last]};
}

std::optional<TaskId> Waiting::cause_of(TaskId task) const {
  std::optional<TaskId> cause;
  const auto consider = [&](TaskId other) {
    if (!cause || trace_.tasks[*cause].end < trace_.tasks[other].end) cause = other;
  };
  for (const TaskId other : graph_.predecessors(task)) consider(other);
  for (const TaskId other : before_[task]) consider(other);
  return cause;
}

std::vector<TaskId> Waiting::last_chain() const {
  std::optional<TaskId> at;
  for (TaskId task = 0; task < graph_.size(); ++task) {
    const platform::Seconds end = trace_.tasks[task].end;
    if (window_.end < end) continue;
    if (!at || trace_.tasks[*at].end < end) at = task;
  }
  std::vector<TaskId> chain;
  while (at) {
    chain.push_back(*at);
    if (!(window_.start < trace_.tasks[*at].start)) break;
    const auto cause = cause_of(*at);
    // Where clocks of several engines disagree a little, as in a measured trace, a task may seem to
    // wait for one that began after it.
    if (cause && place_in_time(trace_, *at) <= place_in_time(trace_, *cause)) break;
    at = cause;
  }
  std::ranges::reverse(chain);
  return chain;
}

}  // namespace offstage::scheduler
