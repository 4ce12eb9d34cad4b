#include "scheduler/plan_moves.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "scheduler/bisection.h"
#include "scheduler/plan_space.h"
#include "scheduler/shares.h"

namespace offstage::scheduler {
namespace {

template <typename T>
void add_steps(std::vector<Strategy>& all, const Strategy& strategy, T Strategy::*knob,
               const std::vector<T>& steps, T lowest) {
  for (const T step : steps) {
    Strategy changed = strategy;
    changed.*knob += step;
    if (changed.*knob >= lowest) all.push_back(std::move(changed));
  }
}

// The entries beside the present value of a list that is sorted.
template <typename T>
void add_adjacent(std::vector<Strategy>& all, const Strategy& strategy, T Strategy::*knob,
                  const std::vector<T>& values) {
  const auto here = std::ranges::find(values, strategy.*knob);
  if (here == values.end()) return;
  for (const auto& other :
       {here == values.begin() ? here : here - 1, here + 1 == values.end() ? here : here + 1}) {
    if (other == here) continue;
    Strategy changed = strategy;
    changed.*knob = *other;
    all.push_back(std::move(changed));
  }
}

void add_slots(std::vector<Strategy>& all, const PlanningInput& input, const Strategy& strategy) {
  const auto& request = input.request;
  Strategy more = strategy;
  const auto add = [&](int Strategy::*knob, bool fixed, const std::vector<int>& steps) {
    if (fixed) return;
    add_steps(all, strategy, knob, steps, 1);
    more.*knob += steps.front();
  };
  add(&Strategy::weight_slots, request.weight_slots.has_value(), {1, -1});
  add(&Strategy::gradient_slots, request.gradient_slots.has_value(), {1, -1});
  // Where the optimizer is the bottleneck, gradients pile up in CPU memory.
  add(&Strategy::host_gradient_slots, request.host_gradient_slots.has_value(),
      {2, -1, 3 * strategy.host_gradient_slots});
  const bool unused = strategy.activations == ActivationPlace::gpu;
  add(&Strategy::spare_activation_slots, unused || request.spare_activation_slots.has_value(),
      {2, -1});
  all.push_back(std::move(more));
}

// One sub-model or an eighth of the model more or fewer, half as many, none.
std::vector<std::int64_t> placement_steps(std::int64_t now, std::int64_t blocks) {
  std::vector<std::int64_t> steps{1};
  if (now > 0) steps.push_back(-1);
  if (blocks >= 16) steps.insert(steps.end(), {blocks / 8, -blocks / 8});
  if (now > 2) steps.insert(steps.end(), {-now / 2, -now});
  return steps;
}

void add_placements(std::vector<Strategy>& all, const PlanningInput& input,
                    const Strategy& strategy) {
  const auto& request = input.request;
  const std::int64_t blocks = block_submodels(input, strategy);
  const auto add = [&](std::int64_t Strategy::*knob) {
    add_steps(all, strategy, knob, placement_steps(strategy.*knob, blocks), std::int64_t{0});
  };
  const bool state_open = !request.resident_state && state_may_reside(input, strategy);
  if (state_open) add(&Strategy::resident_state);
  if (!request.resident_weights) add(&Strategy::resident_weights);
  if (!request.kept_activations) add(&Strategy::kept_activations);
  if (!state_open || request.resident_weights) return;
  for (const std::int64_t step : placement_steps(strategy.resident_state, blocks)) {
    Strategy changed = strategy;
    changed.resident_state += step;
    changed.resident_weights -= step;
    if (std::min(changed.resident_state, changed.resident_weights) >= 0) all.push_back(changed);
  }
}

// `strategy` with the largest value of a knob, up to `high`, that the GPUs hold, if all else fits
// then. The knob moves bytes onto the GPUs.
std::optional<Strategy> filled(const PlanningInput& input, Strategy strategy,
                               std::int64_t Strategy::*knob, std::int64_t high) {
  if (high < 0) return std::nullopt;
  strategy.*knob = 0;
  Plan plan = make_plan(input.machine, input.workload, strategy);
  const auto shortfall = [&](std::int64_t value) {
    strategy.*knob = value;
    change_strategy(plan, strategy);
    return shortfall_of(plan);
  };
  const auto most =
      largest(0, high, [&](std::int64_t value) { return shortfall(value).gpu.value == 0; });
  if (!most || !shortfall(*most).none()) return std::nullopt;
  return strategy;
}

bool counts_are_possible(const PlanningInput& input, const Strategy& strategy) {
  const std::int64_t placed =
      strategy.resident_state + strategy.resident_weights + strategy.nvme_state;
  const std::int64_t blocks = block_submodels(input, strategy);
  return placed <= blocks && strategy.kept_activations <= blocks;
}

}  // namespace

std::vector<Strategy> neighbours(const PlanningInput& input, const Strategy& strategy) {
  const auto knobs = open_knobs(input);
  std::vector<Strategy> all;
  add_adjacent(all, strategy, &Strategy::micro_batch,
               open_micro_batches(input, strategy.tensor_ways));
  for (auto& changed : all) changed.shares = best_shares(input, changed);
  for (auto& shares : share_moves(input, strategy)) {
    all.push_back(strategy);
    all.back().shares = std::move(shares);
  }
  if (strategy.cuts.empty()) {
    add_adjacent(all, strategy, &Strategy::layers_per_submodel, knobs.packs);
  }
  add_adjacent(all, strategy, &Strategy::activations, knobs.places);
  add_slots(all, input, strategy);
  add_placements(all, input, strategy);
  std::erase_if(all, [&](const Strategy& s) { return !counts_are_possible(input, s); });
  return all;
}

std::vector<Strategy> refitted(const PlanningInput& input, const Strategy& strategy) {
  const auto& request = input.request;
  const std::int64_t blocks = block_submodels(input, strategy);
  std::vector<Strategy> all;
  const auto fill = [&](std::int64_t Strategy::*knob, std::int64_t high) {
    auto full = filled(input, strategy, knob, high);
    if (full) all.push_back(std::move(*full));
  };
  if (!request.kept_activations) fill(&Strategy::kept_activations, blocks);
  if (!request.resident_state && state_may_reside(input, strategy)) {
    fill(&Strategy::resident_state, blocks - strategy.resident_weights - strategy.nvme_state);
  }
  return all;
}

std::vector<std::int64_t> mixed_cuts(const PlanningInput& input, const Strategy& strategy,
                                     std::int64_t coarse, std::int64_t fine) {
  const std::int64_t layers = input.workload.model.layers;
  const auto cuts_with = [&](std::int64_t packs) {
    std::vector<std::int64_t> cuts(static_cast<std::size_t>(packs), coarse);
    for (std::int64_t left = layers - packs * coarse; left > 0; left -= cuts.back()) {
      cuts.push_back(std::min(left, fine));
    }
    return cuts;
  };
  const auto holds = [&](std::int64_t packs) {
    Strategy mixed = strategy;
    mixed.cuts = cuts_with(packs);
    return !fitting_plans(input, mixed).empty();
  };
  const auto fewest = smallest(1, layers / coarse, holds);
  return fewest ? cuts_with(*fewest) : std::vector<std::int64_t>{};
}

}  // namespace offstage::scheduler
