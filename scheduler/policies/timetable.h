#pragma once

#include <vector>

#include "platform/units.h"
#include "scheduler/task_graph.h"

// Schedules made before a run, from times that are taken for certain.
namespace offstage::scheduler {

enum class Direction { forward, backward };

// Each task in turn as early as its predecessors and engines allow, also in a gap that earlier
// choices left; backward, as late as possible before the graph's end, with the roles of
// predecessors and successors exchanged and time counted from the end.
//
// `order`: every task once, after its predecessors (backward: its successors).
// Returns the starts, by TaskId; backward, how long before the end of the graph each task ends.
std::vector<platform::Seconds> insert_in_order(const TaskGraph& graph,
                                               const std::vector<platform::Seconds>& times,
                                               const std::vector<TaskId>& order,
                                               Direction direction = Direction::forward);

}  // namespace offstage::scheduler
