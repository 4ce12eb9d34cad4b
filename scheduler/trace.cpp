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

platform::Seconds steady_step(const TaskGraph& graph, const Trace& trace) {
  const auto ends = trace.step_ends(graph);
  if (ends.empty()) return {};
  if (ends.size() == 1) return ends.front();
  std::vector<double> distances;
  for (std::size_t i = 1; i < ends.size(); ++i) distances.push_back((ends[i] - ends[i - 1]).value);
  std::sort(distances.begin(), distances.end());
  const std::size_t middle = distances.size() / 2;
  if (distances.size() % 2 == 1) return {distances[middle]};
  return {(distances[middle - 1] + distances[middle]) / 2};
}

}  // namespace offstage::scheduler
