#pragma once

#include <functional>
#include <vector>

#include "calibration/statistics.h"
#include "platform/units.h"

// Clocks of calibration. Work of one thread is timed by the processor time it takes, which is blind
// to other programs that take the core away; what waits is timed by the wall clock.
namespace offstage::calibration {

platform::Seconds thread_time();  // processor time of the calling thread
platform::Seconds wall_time();    // since some fixed moment

struct Effort {
  int least = 5;                  // samples
  platform::Seconds budget{0.1};  // no sample is begun after this, but for the least ones
};

// Seconds of a call on this thread, timed one by one after one call that is not. Calls shorter than
// the clock can tell are timed in groups.
std::vector<double> time_calls(const std::function<void()>& call, const Effort& effort);

}  // namespace offstage::calibration
