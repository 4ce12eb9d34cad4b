#include "scheduler/capacity.h"

#include <algorithm>
#include <map>
#include <utility>

#include "scheduler/plan_estimate.h"

namespace offstage::scheduler {
namespace {

using workloads::Workload;

PlanningInput with_workload(const PlanningInput& input, const Workload& workload) {
  return {input.machine, workload, input.profile, input.request};
}

// The largest index in [first, last] for which `holds`, once false false for all larger ones:
// strides double while it holds, then halve.
template <typename Holds>
std::optional<std::int64_t> largest_index(std::int64_t first, std::int64_t last,
                                          const Holds& holds) {
  if (first > last || !holds(first)) return std::nullopt;
  std::int64_t low = first;      // holds
  std::int64_t high = last + 1;  // does not, or is out of range
  for (std::int64_t stride = 1; low + stride < high; stride *= 2) {
    if (!holds(low + stride)) {
      high = low + stride;
      break;
    }
    low += stride;
  }
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

// "state of gpu0" and "state of gpu1" are both "state".
std::string without_gpu(const std::string& what) { return what.substr(0, what.rfind(" of gpu")); }

std::int64_t batch_step(const PlanningInput& input) {
  return static_cast<std::int64_t>(input.machine.gpus.size()) * input.machine.hosts *
         input.request.micro_batch.value_or(1);
}

std::int64_t most_steps(const PlanningInput& input, std::int64_t most_tokens) {
  return std::max<std::int64_t>(1,
                                most_tokens / (batch_step(input) * input.workload.sequence_length));
}

}  // namespace

FitLimit what_lacks(const PlanningInput& input) {
  const Plan plan = nearest_to_fitting(input);
  const PoolLedger& pool = plan.memory.pools[plan.memory.worst().value()];
  std::map<std::string, FitLimit> lines;
  std::map<std::string, platform::Bytes> sizes;
  for (const LedgerLine& line : pool.lines) {
    if (line.reserve) continue;
    const std::string what = without_gpu(line.what);
    lines[what] = {pool.name, what, line.knob, pool.total() - pool.capacity};
    sizes[what] += line.bytes;
  }
  const auto largest =
      std::ranges::max_element(sizes, {}, [](const auto& entry) { return entry.second; });
  return lines.at(largest->first);
}

std::int64_t dealable_batch(const PlanningInput& input, std::int64_t batch) {
  const std::int64_t step = batch_step(input);
  return (batch + step - 1) / step * step;
}

std::int64_t largest_batch(const PlanningInput& input, std::int64_t most_tokens) {
  const std::int64_t step = batch_step(input);
  Workload workload = input.workload;
  const PlanningInput changed = with_workload(input, workload);
  const auto fits = [&](std::int64_t times) {
    workload.global_batch = times * step;
    return anything_fits(changed);
  };
  return largest_index(1, most_steps(input, most_tokens), fits).value_or(0) * step;
}

std::optional<FitLimit> batch_limit(const PlanningInput& input, std::int64_t largest,
                                    std::int64_t most_tokens) {
  const std::int64_t step = batch_step(input);
  if (largest == most_steps(input, most_tokens) * step) return std::nullopt;
  Workload workload = input.workload;
  workload.global_batch = largest + step;
  return what_lacks(with_workload(input, workload));
}

std::optional<std::int64_t> largest_in_row(const PlanningInput& input, const ModelRow& row) {
  return largest_index(row.first, row.last, [&](std::int64_t index) {
    return anything_fits(with_workload(input, row.model(index)));
  });
}

std::optional<FitLimit> row_limit(const PlanningInput& input, const ModelRow& row,
                                  std::optional<std::int64_t> largest) {
  const std::int64_t next = largest ? *largest + 1 : row.first;
  if (next > row.last) return std::nullopt;
  return what_lacks(with_workload(input, row.model(next)));
}

std::optional<Speed> quick_speed(const PlanningInput& input, const Evaluate& evaluate) {
  const PlanningResult result = choose_plan(input, evaluate, kQuick);
  if (!result.fits) return std::nullopt;
  return Speed{result.step, estimated_bound(result.plan, input.profile)};
}

}  // namespace offstage::scheduler
