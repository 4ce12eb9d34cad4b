#include <algorithm>

#include "scheduler/policies/ordered_policy.h"
#include "scheduler/policies/registry.h"
#include "scheduler/policies/timetable.h"
#include "scheduler/policies/upward_rank.h"

// Heterogeneous Earliest Finish Time: a schedule made before the run, from lone times. Tasks by
// upward rank, each as early as its predecessors and engines allow. Which GPU a task runs on is the
// plan's decision (Strategy::shares), so that of HEFT's two choices the order is left; the run then
// keeps to it.
// Source: Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002, section 4.
namespace offstage::scheduler {

std::unique_ptr<Policy> make_heft(const PolicyInput& input) {
  // By rank a task comes after its predecessors only where none takes no time: ids break ties.
  auto order = tasks_by_rank(upward_ranks(input.graph, input.lone_times));
  const auto starts = insert_in_order(input.graph, input.lone_times, order);
  // Tasks that start together, one of which takes no time, stay in order of rank.
  std::stable_sort(order.begin(), order.end(),
                   [&](TaskId a, TaskId b) { return starts[a] < starts[b]; });
  return std::make_unique<OrderedPolicy>(input, order);
}

}  // namespace offstage::scheduler
