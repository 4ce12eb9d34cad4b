#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "scheduler/metrics.h"
#include "scheduler/planner.h"

// How large: the largest batch of a model on a machine, and the largest of a row of models. Both
// ask the planner whether anything fits, by doubling and then halving; how fast is asked of few.
//
//   const auto batch = largest_batch(input, kMostTokens);
//   const auto layers = largest_in_row(input, row);   // row.model(i): i layers
namespace offstage::scheduler {

// Tokens of one step beyond which nobody trains: the largest batch of Llama 3 405B.
// Source: Dubey et al. 2024, arXiv 2407.21783, section 3.4.1 (16 M tokens).
constexpr std::int64_t kMostTokens = std::int64_t{16} << 20;

// What keeps the next larger one from fitting, when CPU memory holds all it can and the GPUs the
// rest: the pool that lacks most, the largest thing in it and the knob that moves that.
struct FitLimit {
  std::string pool;  // "host0"
  std::string line;  // "state", of all GPUs together
  std::string knob;  // empty when nothing the user sets moves it
  platform::Bytes lacks;
};

// Precondition: nothing fits.
FitLimit what_lacks(const PlanningInput& input);

// Sequences of the largest global batch, 0 when not even one on each GPU fits: over multiples of
// the number of GPUs (and of a fixed micro-batch) up to `most_tokens` a step.
// input.workload.global_batch is not looked at.
std::int64_t largest_batch(const PlanningInput& input, std::int64_t most_tokens);
// What the next larger batch lacks; absent where `most_tokens` ended the search, not memory.
std::optional<FitLimit> batch_limit(const PlanningInput& input, std::int64_t largest,
                                    std::int64_t most_tokens);

// Models by rising size; `model` is asked for indices in [first, last] only.
struct ModelRow {
  std::int64_t first = 1, last = 1;
  std::function<workloads::Workload(std::int64_t)> model;
};

// The index of the largest that fits; absent when not even the first does. input.workload is not
// looked at.
std::optional<std::int64_t> largest_in_row(const PlanningInput& input, const ModelRow& row);
// What the next one lacks; absent where the row ended, not memory.
std::optional<FitLimit> row_limit(const PlanningInput& input, const ModelRow& row,
                                  std::optional<std::int64_t> largest);

// A global batch that can be dealt: the least multiple of GPUs (and a fixed micro-batch) from
// `batch` on.
std::int64_t dealable_batch(const PlanningInput& input, std::int64_t batch);

struct Speed {
  platform::Seconds step;
  Bound bound;  // the busiest engine or link; the critical path is not looked at
};

// The speed of a plan found with little effort; absent when nothing fits.
std::optional<Speed> quick_speed(const PlanningInput& input, const Evaluate& evaluate);

}  // namespace offstage::scheduler
