#include "scheduler/trace.h"

#include <algorithm>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::scheduler {

std::vector<platform::Seconds> Trace::step_ends(const TaskGraph& graph) const {
  OFFSTAGE_CHECK(tasks.size() == graph.size(),
                 fmt::format("a trace of {} tasks, a graph of {}", tasks.size(), graph.size()));
  std::vector<platform::Seconds> ends(graph.steps);
  for (TaskId task = 0; task < tasks.size(); ++task) {
    auto& end = ends[graph.tasks[task].step];
    end = std::max(end, tasks[task].end);
  }
  return ends;
}

SteadyWindow steady_window(std::span<const platform::Seconds> step_ends) {
  const std::size_t count = step_ends.size();
  OFFSTAGE_CHECK(count > 0, "a run of no steps has no steady state");
  if (count == 1) return {{}, step_ends.front(), 1};
  const std::size_t last = count == 2 ? 1 : count - 2;
  return {step_ends.front(), step_ends[last], last};
}

std::vector<platform::Seconds> steady_steps(std::span<const platform::Seconds> step_ends) {
  if (step_ends.size() < 2) return {step_ends.begin(), step_ends.end()};
  const std::size_t last = steady_window(step_ends).steps;
  std::vector<platform::Seconds> steps;
  for (std::size_t i = 1; i <= last; ++i) steps.push_back(step_ends[i] - step_ends[i - 1]);
  return steps;
}

platform::Seconds median(std::vector<platform::Seconds> values) {
  OFFSTAGE_CHECK(!values.empty(), "the median of nothing");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return (values[middle - 1] + values[middle]) * 0.5;
}

platform::Seconds steady_step(const TaskGraph& graph, const Trace& trace) {
  const auto ends = trace.step_ends(graph);
  return ends.empty() ? platform::Seconds{} : median(steady_steps(ends));
}

}  // namespace offstage::scheduler
