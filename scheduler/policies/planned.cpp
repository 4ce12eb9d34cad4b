#include <numeric>

#include "scheduler/policies/ordered_policy.h"
#include "scheduler/policies/registry.h"

// The order that the planner wrote the tasks down in.
namespace offstage::scheduler {

std::unique_ptr<Policy> make_planned(const PolicyInput& input) {
  std::vector<TaskId> order(input.graph.size());
  std::iota(order.begin(), order.end(), TaskId{0});
  return std::make_unique<OrderedPolicy>(input, order);
}

}  // namespace offstage::scheduler
