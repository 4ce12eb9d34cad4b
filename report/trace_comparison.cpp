#include "report/trace_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include <fmt/format.h>

#include "report/repeated_tasks.h"
#include "scheduler/trace.h"

namespace offstage::report {
namespace {

using platform::Seconds;

struct TaskTimes {
  std::string kind;
  Seconds mean;
};

// As scheduler/trace.h, Note [The steady state], has it.
struct SteadySteps {
  std::uint32_t first = 0, last = 0;
};

SteadySteps steady_steps_of(const TraceContents& trace) {
  const std::uint32_t first = trace.tasks.front().step, last = trace.tasks.back().step;
  if (last == first) return {first, last};
  return {first + 1, last == first + 1 ? last : last - 1};
}

std::map<TaskKey, TaskTimes> times_by_task(const TraceContents& trace) {
  const auto [first, last] = steady_steps_of(trace);
  const std::uint32_t steps = last - first + 1;
  std::map<TaskKey, TaskTimes> times;
  for (const auto& [key, tasks] : repeated_tasks(trace, first, last)) {
    Seconds total;
    for (const TracedTask* task : tasks) total += task->duration;
    times[key] = {tasks.front()->kind, {total.value / steps}};
  }
  return times;
}

// As scheduler::steady_step, from what the file says.
Seconds steady_step(const TraceContents& trace) {
  std::vector<Seconds> ends;
  std::uint32_t step = trace.tasks.front().step;
  Seconds start = trace.tasks.front().start;
  for (const TracedTask& task : trace.tasks) {
    const Seconds end = task.start + task.duration;
    if (ends.empty() || task.step != step) ends.push_back(end);
    step = task.step;
    ends.back() = std::max(ends.back(), end);
    start = std::min(start, task.start);
  }
  if (ends.size() == 1) return ends.front() - start;
  return scheduler::median(scheduler::steady_steps(ends));
}

// Work that takes no time in either trace agrees; against a measurement of zero nothing else does.
double relative_error(Seconds a, Seconds b) {
  if (a == b) return 0.0;
  return b.value > 0.0 ? std::abs(a.value - b.value) / b.value : 1.0;
}

std::string display_name(const TaskKey& key) {
  return key.second == 0 ? key.first : fmt::format("{} #{}", key.first, key.second + 1);
}

}  // namespace

TraceComparison compare_traces(const TraceContents& a, const TraceContents& b) {
  TraceComparison comparison;
  comparison.step_a = steady_step(a);
  comparison.step_b = steady_step(b);
  comparison.step_error = relative_error(comparison.step_a, comparison.step_b);

  const std::map<TaskKey, TaskTimes> times_a = times_by_task(a);
  const std::map<TaskKey, TaskTimes> times_b = times_by_task(b);
  std::map<std::string, KindDifference> kinds;
  double largest = -1.0;
  for (const auto& [key, entry] : times_a) {
    const auto other = times_b.find(key);
    if (other == times_b.end()) {
      ++comparison.only_in_a;
      continue;
    }
    KindDifference& kind = kinds[entry.kind];
    kind.kind = entry.kind;
    ++kind.tasks;
    kind.a += entry.mean;
    kind.b += other->second.mean;
    const double distance = std::abs((entry.mean - other->second.mean).value);
    if (distance > largest) {
      largest = distance;
      comparison.worst = TaskDifference{display_name(key), entry.mean, other->second.mean};
    }
  }
  const std::size_t matched = times_a.size() - comparison.only_in_a;
  comparison.only_in_b = times_b.size() - matched;
  for (auto& [name, kind] : kinds) {
    kind.error = relative_error(kind.a, kind.b);
    comparison.by_kind.push_back(kind);
  }
  return comparison;
}

}  // namespace offstage::report
