#include <algorithm>

#include "scheduler/policies/list_policy.h"
#include "scheduler/policies/registry.h"
#include "scheduler/policies/upward_rank.h"

namespace offstage::scheduler {
namespace {

using platform::Seconds;

// Upward ranks where a compute engine's tasks also wait for each other, in the plan's order.
std::vector<Seconds> ranks_in_plan_order(const PolicyInput& input) {
  const TaskGraph& graph = input.graph;
  std::vector<Seconds> ranks(graph.size());
  std::vector<Seconds> next(graph.engines.size());  // rank of the engine's next task in the plan
  for (auto task = static_cast<TaskId>(graph.size()); task-- > 0;) {
    Seconds longest;
    for (const TaskId successor : graph.successors(task)) {
      longest = std::max(longest, ranks[successor]);
    }
    for (const EngineId engine : graph.task_engines(task)) {
      if (graph.engines[engine].kind == EngineKind::compute)
        longest = std::max(longest, next[engine]);
    }
    ranks[task] = input.lone_times[task] + longest;
    for (const EngineId engine : graph.task_engines(task)) next[engine] = ranks[task];
  }
  return ranks;
}

}  // namespace

std::unique_ptr<Policy> make_resource_aware(const PolicyInput& input) {
  return std::make_unique<ListPolicy>(input, places_by_rank(ranks_in_plan_order(input)),
                                      Readiness::queued);
}

}  // namespace offstage::scheduler
