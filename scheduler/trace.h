#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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

// Note [The steady state]
// The first step of a run fills its pipelines: what it fetches waits for nothing. The last one has
// nobody behind it: its updates have the memory and the cores to themselves. The steps between are
// what a long run consists of: from the end of the first to the end of the last but one. Of two
// steps the second, of one its own time, is the best there is.
struct SteadyWindow {
  platform::Seconds begin, end;
  std::size_t steps = 1;  // in it
};
// Precondition: not empty.
SteadyWindow steady_window(std::span<const platform::Seconds> step_ends);

// The seconds of each step in it.
std::vector<platform::Seconds> steady_steps(std::span<const platform::Seconds> step_ends);

// Of an even number of values the middle of the middle two. Precondition: not empty.
platform::Seconds median(std::vector<platform::Seconds> values);

// Seconds of a step in the steady state: their median.
platform::Seconds steady_step(const TaskGraph& graph, const Trace& trace);

}  // namespace offstage::scheduler
