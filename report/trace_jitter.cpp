#include "report/trace_jitter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "platform/error.h"
#include "scheduler/trace.h"

namespace offstage::report {
namespace {

using platform::Seconds;

constexpr std::size_t kQuantiles = 21;
// The first fills caches and pipelines; of one more step each task would be its own median.
constexpr std::uint32_t kFewestSteps = 4;

// A task's times in the steps: its name, and how many of that name came before it in the step.
std::map<std::pair<std::string, int>, std::vector<TracedTask>> by_task(const TraceContents& trace) {
  std::map<std::pair<std::string, int>, std::vector<TracedTask>> tasks;
  std::map<std::string, int> seen;  // names in this step
  const std::uint32_t first = trace.tasks.front().step;
  std::uint32_t step = first;
  for (const TracedTask& task : trace.tasks) {
    if (task.step == first) continue;
    if (task.step != step) seen.clear();
    step = task.step;
    tasks[{task.name, seen[task.name]++}].push_back(task);
  }
  return tasks;
}

std::vector<double> quantiles_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  std::vector<double> quantiles;
  for (std::size_t i = 0; i < kQuantiles; ++i) {
    const double place = static_cast<double>(i * (values.size() - 1)) / (kQuantiles - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    quantiles.push_back(std::lerp(values[below], values[above], place - std::floor(place)));
  }
  return quantiles;
}

}  // namespace

KindQuantiles jitter_of(const TraceContents& trace) {
  const std::uint32_t steps = trace.tasks.back().step - trace.tasks.front().step + 1;
  if (steps < kFewestSteps) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{} steps are too few to see how tasks vary: record at least {}", steps,
                            kFewestSteps),
                Where{trace.file, {}, {}});
  }
  std::map<std::string, std::vector<double>> ratios;
  for (const auto& [key, tasks] : by_task(trace)) {
    std::vector<Seconds> times;
    for (const TracedTask& task : tasks) times.push_back(task.duration);
    const Seconds usual = scheduler::median(times);
    if (!(usual > Seconds{})) continue;
    for (const Seconds time : times) ratios[tasks.front().kind].push_back(time / usual);
  }
  KindQuantiles quantiles;
  for (auto& [kind, values] : ratios) quantiles[kind] = quantiles_of(std::move(values));
  return quantiles;
}

}  // namespace offstage::report
