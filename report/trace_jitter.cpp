#include "report/trace_jitter.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "platform/error.h"
#include "report/repeated_tasks.h"
#include "scheduler/random_draw.h"
#include "scheduler/trace.h"

namespace offstage::report {
namespace {

using platform::Seconds;

constexpr std::size_t kQuantiles = 21;
// The first, which fills caches and pipelines, is left out; of one more step each task would be its
// own median.
constexpr std::uint32_t kFewestSteps = 4;

std::vector<double> quantiles_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::vector<double> quantiles;
  for (std::size_t i = 0; i < kQuantiles; ++i) {
    const double part = static_cast<double>(i) / (kQuantiles - 1);
    quantiles.push_back(scheduler::quantile_at(values, part));
  }
  return quantiles;
}

}  // namespace

KindQuantiles jitter_of(const TraceContents& trace) {
  const std::uint32_t first = trace.tasks.front().step, last = trace.tasks.back().step;
  const std::uint32_t steps = last - first + 1;
  if (steps < kFewestSteps) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{} steps are too few to see how tasks vary: record at least {}", steps,
                            kFewestSteps),
                Where{trace.file, {}, {}});
  }
  std::map<std::string, std::vector<double>> ratios;
  for (const auto& [key, tasks] : repeated_tasks(trace, first + 1, last)) {
    std::vector<Seconds> times;
    for (const TracedTask* task : tasks) times.push_back(task->duration);
    const Seconds usual = scheduler::median(times);
    if (!(usual > Seconds{})) continue;
    for (const Seconds time : times) ratios[tasks.front()->kind].push_back(time / usual);
  }
  KindQuantiles quantiles;
  for (auto& [kind, values] : ratios) quantiles[kind] = quantiles_of(std::move(values));
  return quantiles;
}

}  // namespace offstage::report
