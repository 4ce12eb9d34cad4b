#pragma once

#include <vector>

#include "platform/units.h"
#include "scheduler/policy.h"
#include "scheduler/task_graph.h"

// A run in the mind: what a policy would do if every task took the time it is expected to.
namespace offstage::scheduler {

// How long it takes. The policy is used up.
platform::Seconds rehearse(const TaskGraph& graph, const std::vector<platform::Seconds>& times,
                           Policy& policy);

}  // namespace offstage::scheduler
