#include <algorithm>
#include <numeric>
#include <utility>

#include "scheduler/policy_kinds.h"
#include "scheduler/policy_list.h"

namespace offstage::scheduler {

std::unique_ptr<Policy> make_critical_path_policy(const PolicyInput& input) {
  const auto ranks = upward_ranks(input.graph, input.lone_times);
  std::vector<TaskId> by_rank(input.graph.size());
  std::iota(by_rank.begin(), by_rank.end(), TaskId{0});
  std::stable_sort(by_rank.begin(), by_rank.end(),
                   [&](TaskId a, TaskId b) { return ranks[a] > ranks[b]; });
  std::vector<std::uint32_t> order(by_rank.size());
  for (std::uint32_t place = 0; place < by_rank.size(); ++place) order[by_rank[place]] = place;
  return std::make_unique<ListPolicy>(input, std::move(order));
}

}  // namespace offstage::scheduler
