#pragma once

#include <cstdint>
#include <vector>

#include "platform/machine.h"
#include "report/chrome_trace.h"

// What a trace's counters show over time: the memory in use in each pool and the load of each link,
// derived from when the tasks ran.
namespace offstage::report {

// A moment on the trace's clock; whole nanoseconds, so that the rows of a trace never overlap by a
// rounding error.
using Nanoseconds = std::int64_t;
Nanoseconds to_nanoseconds(platform::Seconds time);

// The values of one counter from `at` on.
struct PoolPoint {
  Nanoseconds at = 0;
  platform::PoolId pool = 0;
  std::int64_t slots_bytes = 0;    // slots with an occupant
  std::int64_t working_bytes = 0;  // taken by running compute tasks
  std::int64_t kept_bytes = 0;     // the part of slots_bytes that is free while unoccupied
};
struct LinkPoint {
  Nanoseconds at = 0;
  platform::LinkId link = 0;
  std::int64_t per_second = 0;  // bytes, or core-nanoseconds on a link of cores
};

// Both begin with a zero for every pool or link at the window's start; then they hold a point for
// each change, in order of time. A link's load is each task's amount spread evenly over the time
// the task took.
std::vector<PoolPoint> pool_points(const TraceWindow& window, const platform::Machine& machine);
std::vector<LinkPoint> link_points(const TraceWindow& window, const platform::Machine& machine);

}  // namespace offstage::report
