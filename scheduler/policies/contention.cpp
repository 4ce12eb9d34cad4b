#include "scheduler/policies/contention.h"

#include <algorithm>
#include <set>
#include <utility>

namespace offstage::scheduler {

using platform::Seconds;

std::vector<Seconds> contended_times(const PolicyInput& input) {
  std::vector<Seconds> times = input.lone_times;
  if (input.links == nullptr) return times;
  const TaskGraph& graph = input.graph;
  std::vector<double> engine_work(graph.engines.size()), link_work(input.links->links());
  std::set<std::pair<platform::LinkId, EngineId>> users;
  for (TaskId task = 0; task < graph.size(); ++task) {
    for (const EngineId engine : graph.task_engines(task)) {
      engine_work[engine] += input.lone_times[task].value;
    }
    for (const LinkLoad& load : input.links->of(task)) {
      link_work[load.link] += load.busy.value;
      users.emplace(load.link, graph.task_engines(task).front());
    }
  }
  double most = 0.0;
  for (const double work : engine_work) most = std::max(most, work);
  for (const double work : link_work) most = std::max(most, work);
  if (most == 0.0) return times;
  std::vector<double> sharers(link_work.size());
  for (const auto& [link, engine] : users) sharers[link] += 1.0;
  for (TaskId task = 0; task < graph.size(); ++task) {
    for (const LinkLoad& load : input.links->of(task)) {
      const double pressure = link_work[load.link] / most;
      times[task] =
          std::max(times[task], load.busy * (1.0 + pressure * (sharers[load.link] - 1.0)));
    }
  }
  return times;
}

}  // namespace offstage::scheduler
