#pragma once

#include <cstdint>
#include <vector>

#include "platform/units.h"
#include "scheduler/task_graph.h"

// When each task of a graph ran, on whatever backend.
namespace offstage::scheduler {

struct Interval {
  platform::Seconds start, end;
};

struct Trace {
  std::vector<Interval> tasks;  // by TaskId

  // When the last task of each step ended, by step.
  std::vector<platform::Seconds> step_ends(const TaskGraph& graph) const;
};

// Seconds of a step in the steady state: the median distance between consecutive step ends; with
// one step, its own end.
platform::Seconds steady_step(const TaskGraph& graph, const Trace& trace);

}  // namespace offstage::scheduler
