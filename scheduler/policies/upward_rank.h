#pragma once

#include <cstdint>
#include <vector>

#include "platform/units.h"
#include "scheduler/task_graph.h"

// How far a task is from the end of the graph: the priority of most list schedulers.
namespace offstage::scheduler {

// The longest chain of `times` from a task's start to the end of the graph, by TaskId.
// Source: Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002, section 4.1 (upward rank).
std::vector<platform::Seconds> upward_ranks(const TaskGraph& graph,
                                            const std::vector<platform::Seconds>& times);

// The highest rank first, ties by id.
std::vector<TaskId> tasks_by_rank(const std::vector<platform::Seconds>& ranks);
// Each task's place in an order, by TaskId.
std::vector<std::uint32_t> places_in(const std::vector<TaskId>& order);

}  // namespace offstage::scheduler
