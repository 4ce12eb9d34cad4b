#include "scheduler/policy.h"

#include <fmt/format.h>

#include "platform/error.h"
#include "scheduler/policies/registry.h"

namespace offstage::scheduler {

KnownCosts known_costs(const platform::Machine& machine, const std::vector<TaskCost>& costs) {
  KnownCosts known{{}, LinkLoads(machine, costs)};
  known.lone_times.reserve(costs.size());
  for (const TaskCost& cost : costs) known.lone_times.push_back(lone_time(machine, cost));
  return known;
}

std::unique_ptr<Policy> make_policy(PolicyKind kind, const PolicyInput& input) {
  OFFSTAGE_CHECK(input.submit_ahead > 0,
                 fmt::format("submit_ahead must be positive, got {}", input.submit_ahead));
  OFFSTAGE_CHECK(
      input.lone_times.size() == input.graph.size(),
      fmt::format("{} tasks, {} lone times", input.graph.size(), input.lone_times.size()));
  return registered_policies()[static_cast<std::size_t>(kind)].make(input);
}

std::unique_ptr<Policy> make_policy(PolicyKind kind, const TaskGraph& graph,
                                    const KnownCosts& costs, int submit_ahead) {
  return make_policy(kind, {graph, costs.lone_times, submit_ahead, &costs.links});
}

}  // namespace offstage::scheduler
