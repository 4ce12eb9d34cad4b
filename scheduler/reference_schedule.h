#pragma once

#include <cstdint>
#include <vector>

#include "platform/units.h"
#include "scheduler/link_loads.h"
#include "scheduler/task_graph.h"

// How short a run of a small graph can be: what policies are measured against. A branch and bound
// search over the orders of tasks on engines, with every task at its lone time.
//
// Where no link is shared the result is the optimum. Where one is, tasks can only take longer than
// alone, so that the search's optimum and each link's own work are lower bounds of every schedule.
namespace offstage::scheduler {

struct ReferenceSchedule {
  platform::Seconds lower_bound;  // no schedule is shorter
  platform::Seconds shortest;     // found, at lone times
  bool complete = false;          // the search saw every schedule that could have been shorter
  std::int64_t nodes = 0;         // of the search
  std::vector<TaskId> order;      // the shortest one's: every task after its predecessors
};

// Gives up after `most_nodes`: the bound is then that of the graph's chains, engines and links.
// `links`: null where nothing is shared.
// Source: active schedules, Giffler and Thompson, Operations Research 8(4), 1960, for tasks that
// hold several engines: one of those that can start before the earliest possible completion, on an
// engine of the task that completes then, must be next there.
// Errors: Error(bad_usage) for a graph too large to search.
ReferenceSchedule reference_schedule(const TaskGraph& graph,
                                     const std::vector<platform::Seconds>& lone_times,
                                     const LinkLoads* links, std::int64_t most_nodes);

}  // namespace offstage::scheduler
