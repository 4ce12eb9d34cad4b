#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/planning.h"
#include "platform/units.h"
#include "scheduler/estimators.h"
#include "scheduler/explain.h"
#include "scheduler/lost_time.h"

// What `plan --explain` adds to a plan's report: the bound of every resource, where efficiency is
// lost, what exact clipping costs, what a larger batch would change, and what the estimators of
// others would have said.
namespace offstage::cli {

// The same workload planned without clipping.
struct ClippingCost {
  platform::Seconds step, step_without;
  platform::Bytes host, host_without;  // of all sockets
};

struct Explanation {
  std::vector<scheduler::ResourceBound> resources;
  std::vector<scheduler::EngineLoss> compute;       // of every GPU
  std::optional<scheduler::EngineLoss> bottleneck;  // of the busiest engine, when not a GPU's
  std::vector<scheduler::NumaShare> numa;
  std::optional<ClippingCost> clipping;  // when the plan clips
  std::vector<scheduler::BatchOutlook>
      larger_batches;  // when the efficiency is below kGoodEfficiency
  std::vector<scheduler::Estimate> estimates;
};

// Of the bound's pace; above it a larger batch would gain little.
constexpr double kGoodEfficiency = 0.95;

// Without a prediction (the plan does not fit) only NUMA shares and estimates.
// Errors: as answer().
Explanation explain(const Question& question, const scheduler::PlanningResult& result,
                    const Simulated* prediction);

std::string describe_explanation(const Explanation& explanation,
                                 const scheduler::PlanningResult& result,
                                 const Simulated* prediction);

// Keys: resources[{resource, busiest, seconds, part}], lost[{kind, seconds, part, forward_s,
// backward_s, turn_s}], lost_window_s, lost_busy_s, lost_by_engine[{engine, window_s, busy_s,
// lost_s}], bottleneck, numa[{pool, nodes, total_bytes, capacity_bytes}], clipping,
// larger_batches[{global_batch, step_s, efficiency}], estimators[{name, formula, source, gpu_bytes,
// host_bytes, fits}]. `lost` is the mean over all GPUs.
nlohmann::json explanation_json(const Explanation& explanation,
                                const scheduler::PlanningResult& result,
                                const Simulated* prediction);

}  // namespace offstage::cli
