#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "platform/units.h"
#include "scheduler/cost_model.h"
#include "scheduler/plan.h"
#include "scheduler/planner.h"
#include "scheduler/task_graph.h"

// Why a plan is as fast and as large as it is, beyond what the ledger says: how long each resource
// would need by itself, what each NUMA node holds, what a larger batch would change. Where time is
// lost is read off a trace by lost_time.h.
namespace offstage::scheduler {

// One kind of resource, by its busiest member: no step is shorter than `seconds`.
struct ResourceBound {
  std::string resource;  // "GPU compute", "PCIe uplink down", "CPU optimizer"
  std::string busiest;   // "gpu3.compute", "switch1.down"
  platform::Seconds seconds;
};
// Of one step, longest first, the critical path among them; what has no work is left out.
std::vector<ResourceBound> resource_bounds(const Plan& plan, const TaskGraph& graph,
                                           const std::vector<TaskCost>& costs);

// Memory of a socket with several NUMA nodes is interleaved, so every node has the same share.
struct NumaShare {
  std::string pool;
  std::size_t nodes = 0;
  platform::Bytes total, capacity;  // of one node
};
std::vector<NumaShare> numa_shares(const Plan& plan);

struct BatchOutlook {
  std::int64_t global_batch = 0;
  platform::Seconds step;   // of the best plan
  double efficiency = 0.0;  // the busiest resource's work over it
};
// For twice, four times, ... the global batch, until one reaches `target`, which is then the last,
// or none fits. Errors: as choose_plan.
std::vector<BatchOutlook> larger_batches(const PlanningInput& input, const Evaluate& evaluate,
                                         double target, int doublings);

}  // namespace offstage::scheduler
