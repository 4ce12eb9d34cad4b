#include "scheduler/planner.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "scheduler/plan_estimate.h"
#include "scheduler/plan_reasons.h"
#include "scheduler/plan_space.h"
#include "scheduler/strategy_knobs.h"

namespace offstage::scheduler {
namespace {

using platform::Seconds;

// A change has to gain this part of the step to be worth another round.
constexpr double kWorthwhile = 1e-3;

class Search {
 public:
  Search(const PlanningInput& input, const Evaluate& evaluate, const SearchEffort& effort)
      : input_(input), evaluate_(evaluate), effort_(effort) {}

  PlanningResult run() {
    enumerate();
    std::vector<std::size_t> ranking;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].fits) ranking.push_back(i);
    }
    if (ranking.empty()) return nothing_fits();
    for (const auto i : ranking) {
      candidates_[i].bound = estimated_bound(candidates_[i].plan, input_.profile).seconds;
    }
    std::ranges::stable_sort(ranking, {},
                             [this](std::size_t i) { return candidates_[i].bound->value; });
    ranking.resize(std::min(ranking.size(), effort_.finalists));
    evaluate(ranking);
    for (int round = 0; round < effort_.rounds; ++round) {
      if (!improve()) break;
    }
    return best();
  }

 private:
  void add(Plan plan, bool fits) {
    if (!seen_.insert(key_of(plan.strategy)).second) return;
    Candidate candidate;
    candidate.plan = std::move(plan);
    candidate.fits = fits;
    candidates_.push_back(std::move(candidate));
  }

  void enumerate() {
    const auto knobs = open_knobs(input_);
    Strategy strategy = starting_strategy(input_);
    bool any_fits = false;
    for (const auto ways : knobs.ways) {
      if (any_fits && ways > 1 && !few_samples(input_)) break;
      strategy.tensor_ways = ways;
      for (const auto micro_batch : open_micro_batches(input_, ways)) {
        strategy.micro_batch = micro_batch;
        any_fits = enumerate_places(knobs, strategy) || any_fits;
      }
    }
  }

  bool enumerate_places(const OpenKnobs& knobs, Strategy strategy) {
    bool any_fits = false;
    for (const auto pack : knobs.packs) {
      strategy.layers_per_submodel = pack;
      for (const auto place : knobs.places) {
        strategy.activations = place;
        const bool fits = add_fitting(strategy);
        if (!fits) add(least_plan(input_, strategy), false);
        any_fits = any_fits || fits;
      }
    }
    return any_fits;
  }

  // Single slots save memory and never time: they are tried where double ones do not fit.
  bool add_fitting(Strategy strategy) {
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
      if (!plans.empty()) return true;
    }
    return false;
  }

  void evaluate(const std::vector<std::size_t>& which) {
    if (which.empty()) return;
    std::vector<const Plan*> plans;
    for (const auto i : which) plans.push_back(&candidates_[i].plan);
    const auto steps = estimated_steps(plans, evaluate_);
    for (std::size_t i = 0; i < which.size(); ++i) candidates_[which[i]].step = steps[i];
    evaluated_ += which.size();
  }

  std::size_t fastest() const {
    std::size_t best = candidates_.size();
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (!candidates_[i].step) continue;
      if (best == candidates_.size() || *candidates_[i].step < *candidates_[best].step) best = i;
    }
    return best;
  }

  // Evaluates every strategy one change away from the best; whether one of them is better.
  bool improve() {
    const std::size_t before = fastest();
    const Seconds goal = *candidates_[before].step * (1.0 - kWorthwhile);
    std::vector<std::size_t> fresh;
    for (const auto& strategy : neighbours(input_, candidates_[before].plan.strategy)) {
      if (seen_.contains(key_of(strategy))) continue;
      Plan plan = make_plan(input_.machine, input_.workload, strategy);
      const bool fits = plan.memory.fits();
      add(std::move(plan), fits);
      auto& candidate = candidates_.back();
      if (!fits) continue;
      candidate.bound = estimated_bound(candidate.plan, input_.profile).seconds;
      // What can't beat the best even at its bound need not be run.
      if (*candidate.bound < goal) fresh.push_back(candidates_.size() - 1);
    }
    evaluate(fresh);
    return *candidates_[fastest()].step < goal;
  }

  PlanningResult best() {
    const std::size_t chosen = fastest();
    PlanningResult result;
    result.fits = true;
    result.step = *candidates_[chosen].step;
    result.evaluated = evaluated_;
    std::optional<std::size_t> second;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (i == chosen || !candidates_[i].step) continue;
      if (!second || *candidates_[i].step < *candidates_[*second].step) second = i;
    }
    if (second) {
      result.runner_up = candidates_[*second].plan;
      result.runner_up_step = candidates_[*second].step;
    }
    auto reasons = explain_choice(input_, candidates_, chosen);
    result.plan = std::move(candidates_[chosen].plan);
    result.plan.reasons = std::move(reasons);
    return result;
  }

  PlanningResult nothing_fits() {
    const auto least = std::ranges::min_element(
        candidates_, {}, [](const Candidate& c) { return shortfall_of(c.plan).worst().value; });
    PlanningResult result;
    const std::size_t tried = candidates_.size();
    result.plan = std::move(least->plan);
    result.plan.reasons.push_back(fmt::format(
        "none of {} combinations of micro-batch, cuts and places fits, with single slots and as "
        "much state on the GPUs as they hold; this one lacks least",
        tried));
    return result;
  }

  const PlanningInput& input_;
  const Evaluate& evaluate_;
  const SearchEffort& effort_;
  std::vector<Candidate> candidates_;
  std::set<std::string> seen_;
  std::size_t evaluated_ = 0;
};

// The CPU backend trains without residency, kept activations and NVMe, so that on virtual GPUs
// these are the user's to ask for (of the simulator), not ours to choose.
PlanningInput within_reach(const PlanningInput& input) {
  PlanningInput possible = input;
  if (!platform::has_virtual_gpus(input.machine)) return possible;
  for (auto* knob : {&possible.request.resident_state, &possible.request.resident_weights,
                     &possible.request.kept_activations, &possible.request.nvme_state}) {
    if (!knob->has_value()) *knob = 0;
  }
  return possible;
}

// The smallest micro-batch and single slots need least; splits, packs and places trade one pool for
// another.
std::vector<Strategy> least_strategies(const PlanningInput& input) {
  const auto knobs = open_knobs(input);
  Strategy strategy = starting_strategy(input);
  strategy.weight_slots = input.request.weight_slots.value_or(1);
  strategy.gradient_slots = input.request.gradient_slots.value_or(1);
  strategy.host_gradient_slots = input.request.host_gradient_slots.value_or(1);
  strategy.spare_activation_slots = input.request.spare_activation_slots.value_or(1);
  std::vector<Strategy> strategies;
  for (const auto ways : knobs.ways) {
    strategy.tensor_ways = ways;
    strategy.micro_batch = open_micro_batches(input, ways).front();
    for (const auto pack : knobs.packs) {
      strategy.layers_per_submodel = pack;
      for (const auto place : knobs.places) {
        strategy.activations = place;
        strategies.push_back(strategy);
      }
    }
  }
  return strategies;
}

}  // namespace

PlanningResult choose_plan(const PlanningInput& input, const Evaluate& evaluate,
                           const SearchEffort& effort) {
  const PlanningInput possible = within_reach(input);
  return Search(possible, evaluate, effort).run();
}

bool anything_fits(const PlanningInput& asked) {
  const PlanningInput input = within_reach(asked);
  return std::ranges::any_of(least_strategies(input), [&input](const Strategy& strategy) {
    return !fitting_plans(input, strategy).empty();
  });
}

Plan nearest_to_fitting(const PlanningInput& asked) {
  const PlanningInput input = within_reach(asked);
  std::vector<Plan> plans;
  for (const auto& strategy : least_strategies(input)) {
    plans.push_back(least_plan(input, strategy));
  }
  return std::move(*std::ranges::min_element(
      plans, {}, [](const Plan& plan) { return shortfall_of(plan).worst().value; }));
}

}  // namespace offstage::scheduler
