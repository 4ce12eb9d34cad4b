#pragma once

#include <vector>

#include "platform/units.h"
#include "scheduler/task_graph.h"

namespace offstage::scheduler {

// The order of starts in a schedule that begins with `order` and is pushed to the end of the graph
// and back, until that makes it no shorter.
//
// `order`: every task once, after its predecessors; so is the result.
// Source: forward-backward improvement, Li and Willis, European J. of Operational Research 56(3),
// 1992; Valls, Ballestin, Quintanilla, the same, 165(2), 2005 (double justification).
std::vector<TaskId> justified_order(const TaskGraph& graph,
                                    const std::vector<platform::Seconds>& times,
                                    std::vector<TaskId> order);

}  // namespace offstage::scheduler
