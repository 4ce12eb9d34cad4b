#include "scheduler/policy.h"

#include <algorithm>

#include <fmt/format.h>

#include "platform/error.h"
#include "scheduler/policy_kinds.h"

namespace offstage::scheduler {

std::unique_ptr<Policy> make_policy(PolicyKind kind, const PolicyInput& input) {
  OFFSTAGE_CHECK(input.submit_ahead > 0,
                 fmt::format("submit_ahead must be positive, got {}", input.submit_ahead));
  switch (kind) {
    case PolicyKind::fifo:
      return make_fifo_policy(input);
    case PolicyKind::planned:
      return make_planned_policy(input);
    case PolicyKind::critical_path:
      return make_critical_path_policy(input);
  }
  OFFSTAGE_CHECK(false, fmt::format("unknown policy {}", static_cast<int>(kind)));
  return nullptr;
}

std::vector<platform::Seconds> upward_ranks(const TaskGraph& graph,
                                            const std::vector<platform::Seconds>& lone_times) {
  OFFSTAGE_CHECK(lone_times.size() == graph.size(),
                 fmt::format("{} tasks, {} lone times", graph.size(), lone_times.size()));
  std::vector<platform::Seconds> ranks(graph.size());
  // Ids are a topological order, so every successor's rank is known when its turn comes.
  for (auto task = static_cast<TaskId>(graph.size()); task-- > 0;) {
    platform::Seconds longest;
    for (const TaskId successor : graph.successors(task)) {
      longest = std::max(longest, ranks[successor]);
    }
    ranks[task] = lone_times[task] + longest;
  }
  return ranks;
}

}  // namespace offstage::scheduler
