#include "scheduler/policies/list_policy.h"
#include "scheduler/policies/registry.h"
#include "scheduler/policies/upward_rank.h"

// Ready tasks by upward rank, the highest first, ties by id.
namespace offstage::scheduler {

std::unique_ptr<Policy> make_critical_path(const PolicyInput& input) {
  const auto ranks = upward_ranks(input.graph, input.lone_times);
  return std::make_unique<ListPolicy>(input, places_in(tasks_by_rank(ranks)));
}

}  // namespace offstage::scheduler
