#include "calibration/timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>

namespace offstage::calibration {

using platform::Seconds;

Seconds thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  constexpr double kNanosecond = 1e-9;
  return {static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * kNanosecond};
}

Seconds wall_time() {
  return {
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count()};
}

std::vector<double> time_calls(const std::function<void()>& call, const Effort& effort) {
  // Reading the clock is a system call of a fraction of a microsecond: a hundred times that per
  // sample leaves it below a percent.
  constexpr Seconds kShortestSample{50e-6};
  constexpr double kMostCalls = 10'000.0;
  call();
  const Seconds once = thread_time();
  call();
  const Seconds lasted = thread_time() - once;
  const double group =
      std::clamp(std::ceil(kShortestSample.value / std::max(lasted.value, 1e-9)), 1.0, kMostCalls);
  std::vector<double> samples;
  const Seconds begin = wall_time();
  while (static_cast<int>(samples.size()) < effort.least || wall_time() - begin < effort.budget) {
    const Seconds start = thread_time();
    for (int i = 0; i < static_cast<int>(group); ++i) call();
    samples.push_back((thread_time() - start).value / group);
  }
  return samples;
}

}  // namespace offstage::calibration
