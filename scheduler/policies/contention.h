#pragma once

#include <vector>

#include "platform/units.h"
#include "scheduler/policy.h"

namespace offstage::scheduler {

// Tasks' times where links are shared, by TaskId: a copy meets the copies of the other engines that
// use its link, the more often the busier that link is beside the busiest of all. Two GPUs behind
// one PCIe switch that is busy all the time each get half of it.
std::vector<platform::Seconds> contended_times(const PolicyInput& input);

}  // namespace offstage::scheduler
