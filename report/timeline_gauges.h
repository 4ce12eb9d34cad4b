#pragma once

#include <span>
#include <vector>

#include "report/timeline.h"

// What stands below the rows of a timeline: memory of each pool and load of each link over time.
namespace offstage::report {

// Of the pools whose use changes while the tasks run.
std::vector<Gauge> memory_gauges(const TraceWindow& window, const platform::Machine& machine,
                                 std::span<const scheduler::PoolUse> memory);

// Of the links that carry anything.
std::vector<Gauge> link_gauges(const TraceWindow& window, const platform::Machine& machine);

}  // namespace offstage::report
