#pragma once

#include <vector>

#include "platform/units.h"
#include "scheduler/cost_model.h"
#include "scheduler/plan.h"
#include "scheduler/task_graph.h"
#include "scheduler/trace.h"

// How much of every pool a run held at its fullest, from the graph's slots, the state that lies
// still, and when tasks ran. The ledger says the same beforehand; tests compare the two.
namespace offstage::scheduler {

// By PoolId, reserves included.
std::vector<platform::Bytes> pool_peaks(const Plan& plan, const TaskGraph& graph,
                                        const std::vector<TaskCost>& costs, const Trace& trace);

}  // namespace offstage::scheduler
