#include "scheduler/plan_candidates.h"

#include <utility>

#include "scheduler/plan_estimate.h"
#include "scheduler/plan_moves.h"
#include "scheduler/shares.h"
#include "scheduler/strategy_knobs.h"

namespace offstage::scheduler {

Candidates::Candidates(const PlanningInput& input, PolicyKind policy) : input_(input) {
  const auto knobs = open_knobs(input_);
  Strategy strategy = starting_strategy(input_);
  strategy.policy = policy;
  bool any_fits = false;
  for (const auto ways : knobs.ways) {
    if (any_fits && ways > 1 && !few_samples(input_)) break;
    strategy.tensor_ways = ways;
    for (const auto micro_batch : open_micro_batches(input_, ways)) {
      strategy.micro_batch = micro_batch;
      any_fits = add_shares(knobs, strategy) || any_fits;
    }
  }
}

std::size_t Candidates::place_of(const Strategy& strategy) {
  const auto known = places_.find(key_of(strategy));
  if (known != places_.end()) return known->second;
  Plan plan = make_plan(input_.machine, input_.workload, strategy);
  const bool fits = plan.memory.fits();
  return add(std::move(plan), fits);
}

platform::Seconds Candidates::bound_of(std::size_t place) {
  Candidate& candidate = all_[place];
  if (!candidate.bound) {
    candidate.bound = estimated_bound(candidate.plan, input_.profile).seconds;
  }
  return *candidate.bound;
}

std::size_t Candidates::add(Plan plan, bool fits) {
  const auto [known, fresh] = places_.try_emplace(key_of(plan.strategy), all_.size());
  if (fresh) {
    Candidate candidate;
    candidate.plan = std::move(plan);
    candidate.fits = fits;
    all_.push_back(std::move(candidate));
  }
  return known->second;
}

// Those that end together, and nearly even ones, which may fit where the others don't.
bool Candidates::add_shares(const OpenKnobs& knobs, Strategy strategy) {
  strategy.layers_per_submodel = knobs.packs.front();
  const auto best = best_shares(input_, strategy);
  strategy.shares = best;
  bool any_fits = add_places(knobs, strategy);
  strategy.shares = plain_shares(input_, strategy);
  if (strategy.shares != best) any_fits = add_places(knobs, strategy) || any_fits;
  return any_fits;
}

bool Candidates::add_places(const OpenKnobs& knobs, Strategy strategy) {
  bool any_fits = false;
  for (const auto place : knobs.places) {
    strategy.activations = place;
    std::optional<std::int64_t> finer;  // the pack before, where it did not fit
    for (const auto pack : knobs.packs) {
      strategy.layers_per_submodel = pack;
      const auto fitting = add_fitting(strategy);
      if (!fitting) add(least_plan(input_, strategy), false);
      if (fitting && finer) add_mixture(*fitting, *finer);
      finer = fitting ? std::nullopt : std::optional(pack);
      any_fits = any_fits || fitting;
    }
  }
  return any_fits;
}

// Packs of two sizes where the larger one fits and the smaller one does not: smaller packs
// recompute less and can be placed one by one.
void Candidates::add_mixture(Strategy strategy, std::int64_t finer) {
  const auto cuts = mixed_cuts(input_, strategy, strategy.layers_per_submodel, finer);
  if (cuts.empty()) return;
  strategy.layers_per_submodel = 1;
  strategy.cuts = cuts;
  for (auto& plan : fitting_plans(input_, strategy)) add(std::move(plan), true);
}

// Single slots save memory and never time: they are tried where double ones do not fit. The
// strategy with the slots that fit.
std::optional<Strategy> Candidates::add_fitting(Strategy strategy) {
  struct Slots {
    int weights, gradients, spare_activations;
  };
  const auto& request = input_.request;
  for (const auto& slots : {Slots{2, 2, 2}, {2, 1, 2}, {1, 1, 2}, {1, 1, 1}}) {
    strategy.weight_slots = request.weight_slots.value_or(slots.weights);
    strategy.gradient_slots = request.gradient_slots.value_or(slots.gradients);
    strategy.host_gradient_slots = request.host_gradient_slots.value_or(slots.gradients);
    strategy.spare_activation_slots =
        request.spare_activation_slots.value_or(slots.spare_activations);
    auto plans = fitting_plans(input_, strategy);
    for (auto& plan : plans) add(std::move(plan), true);
    if (!plans.empty()) return strategy;
  }
  return std::nullopt;
}

}  // namespace offstage::scheduler
