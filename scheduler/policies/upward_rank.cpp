#include "scheduler/policies/upward_rank.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::scheduler {

using platform::Seconds;

std::vector<Seconds> upward_ranks(const TaskGraph& graph, const std::vector<Seconds>& times) {
  OFFSTAGE_CHECK(times.size() == graph.size(),
                 fmt::format("{} tasks, {} times", graph.size(), times.size()));
  std::vector<Seconds> ranks(graph.size());
  // Ids are a topological order, so every successor's rank is known when its turn comes.
  for (auto task = static_cast<TaskId>(graph.size()); task-- > 0;) {
    Seconds longest;
    for (const TaskId successor : graph.successors(task)) {
      longest = std::max(longest, ranks[successor]);
    }
    ranks[task] = times[task] + longest;
  }
  return ranks;
}

std::vector<TaskId> tasks_by_rank(const std::vector<Seconds>& ranks) {
  std::vector<TaskId> tasks(ranks.size());
  std::iota(tasks.begin(), tasks.end(), TaskId{0});
  std::stable_sort(tasks.begin(), tasks.end(),
                   [&](TaskId a, TaskId b) { return ranks[a] > ranks[b]; });
  return tasks;
}

std::vector<std::uint32_t> places_in(const std::vector<TaskId>& order) {
  std::vector<std::uint32_t> places(order.size());
  std::uint32_t place = 0;
  for (const TaskId task : order) places[task] = place++;
  return places;
}

}  // namespace offstage::scheduler
