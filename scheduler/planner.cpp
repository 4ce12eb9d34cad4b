#include "scheduler/planner.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "scheduler/plan_candidates.h"
#include "scheduler/plan_estimate.h"
#include "scheduler/plan_moves.h"
#include "scheduler/plan_reasons.h"
#include "scheduler/plan_space.h"
#include "scheduler/shares.h"

namespace offstage::scheduler {
namespace {

using platform::Seconds;

// Changes that gain a smaller part of the step than this are not worth another round.
constexpr double kLeastGain = 1e-6;
// With a policy that decides when tasks complete, simulations take longer: once this part of the
// effort is spent, the first move that gains is taken, if it gains as much as this.
constexpr std::int64_t kUnhurriedPart = 4;
constexpr double kLeastGainInHurry = 1e-3;
// Plans evaluated together; the same everywhere, so that the answer does not depend on the cores.
constexpr std::size_t kAtOnce = 8;
// A policy that decides when tasks complete costs a round trip between device and host for each,
// which no simulation knows: it has to gain this part of the step over the plan's own order.
constexpr double kGainOfPolicy = 0.01;
// A simulation with such a policy takes as long as one of so many times the tasks in the plan's
// order: orders are rehearsed first. Measured on Llama-2-70B and GPT-3 175B (3.1 to 3.6).
constexpr std::int64_t kTasksOfPolicy = 3;
// From this efficiency on, bounds tell good moves from bad ones, and the first that gains is taken;
// below it, all moves are tried and the best is taken.
constexpr double kCloseToBound = 0.97;

// Policies that decide when tasks complete; the plan's order is decided early.
bool decides_late(const Plan& plan) { return plan.strategy.policy != PolicyKind::planned; }

class Search {
 public:
  Search(const PlanningInput& input, const Evaluate& evaluate, const SearchEffort& effort)
      : input_(input),
        evaluate_(evaluate),
        effort_(effort),
        late_policy_(input.request.policy.value_or(PolicyKind::resource_aware)),
        candidates_(input, first_policy(input)) {}

  PlanningResult run() {
    std::vector<std::size_t> ranking;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].fits) ranking.push_back(i);
    }
    if (ranking.empty()) return nothing_fits();
    std::ranges::stable_sort(ranking, {},
                             [this](std::size_t i) { return candidates_.bound_of(i).value; });
    const auto chosen = finalists(ranking);
    evaluate(chosen);
    // Which knobs matter depends on the policy: either kind has its own best, and what is best for
    // one may be good for the other. The kind that leads comes first, should effort run out.
    try_late(chosen);
    const bool leads_late = is_late(fastest());
    for (const bool late : {leads_late, !leads_late}) improve(late);
    if (const auto early = fastest_of(false)) try_late({*early});
    if (is_late(fastest())) try_early(fastest());
    improve(true);
    return best();
  }

 private:
  // Plans are known by how they do in their own order, which takes least to find out. Several
  // hosts keep to one policy.
  static PolicyKind first_policy(const PlanningInput& input) {
    if (input.machine.hosts == 1) return PolicyKind::planned;
    return input.request.policy.value_or(PolicyKind::planned);
  }

  void evaluate(const std::vector<std::size_t>& which) {
    if (which.empty()) return;
    std::vector<const Plan*> plans;
    for (const auto i : which) plans.push_back(&candidates_[i].plan);
    const auto steps = estimated_steps(plans, evaluate_);
    for (std::size_t i = 0; i < which.size(); ++i) candidates_[which[i]].step = steps[i];
    evaluated_ += which.size();
    for (const auto* plan : plans) {
      tasks_ += estimated_tasks(*plan) * (decides_late(*plan) ? kTasksOfPolicy : 1);
    }
  }

  // Of those that may be the answer; of the others where there is none of these yet.
  std::size_t fastest() const {
    const auto early = fastest_of(false), late = fastest_of(true);
    if (!early || !late) return early ? *early : *late;
    const bool free = !input_.request.policy;
    return !free || merit(*late) < merit(*early) ? *late : *early;
  }

  bool may_be_answer(std::size_t i) const {
    const auto& policy = input_.request.policy;
    return candidates_[i].step && (!policy || candidates_[i].plan.strategy.policy == *policy);
  }

  std::optional<std::size_t> fastest_of(bool late) const {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (!candidates_[i].step || is_late(i) != late) continue;
      if (!best || merit(i) < merit(*best)) best = i;
    }
    return best;
  }

  bool is_late(std::size_t i) const { return decides_late(candidates_[i].plan); }

  // The step that a candidate is judged by.
  Seconds merit(std::size_t i) const {
    const bool handicapped = is_late(i) && !input_.request.policy;
    return *candidates_[i].step * (handicapped ? 1.0 + kGainOfPolicy : 1.0);
  }

  // By bound, but no more than two that differ only in packs and in what lies where: bounds leave
  // out what a step waits for, and are the further off the fewer micro-batches there are.
  std::vector<std::size_t> finalists(const std::vector<std::size_t>& ranking) const {
    constexpr int kAlike = 2;
    std::map<std::string, int> alike;
    std::vector<std::size_t> chosen;
    for (const auto i : ranking) {
      const auto& s = candidates_[i].plan.strategy;
      const auto kind =
          fmt::format("{} {} {}", s.tensor_ways, s.micro_batch, to_string(s.activations));
      if (chosen.size() < effort_.finalists && ++alike[kind] <= kAlike) chosen.push_back(i);
    }
    return chosen;
  }

  // Takes a strategy if it fits and was not evaluated yet; whether it fits.
  bool consider(const Strategy& strategy, std::vector<std::size_t>& moves) {
    const std::size_t place = candidates_.place_of(strategy);
    const Candidate& candidate = candidates_[place];
    if (!candidate.fits) return false;
    if (candidate.step || std::ranges::count(moves, place) > 0) return true;
    candidates_.bound_of(place);
    moves.push_back(place);
    return true;
  }

  std::vector<std::size_t> moves_from(const Strategy& strategy) {
    std::vector<std::size_t> moves;
    const auto with_refits = [&](const Strategy& changed) {
      consider(changed, moves);
      for (const auto& refit : refitted(input_, changed)) consider(refit, moves);
    };
    with_refits(strategy);
    for (const auto& neighbour : neighbours(input_, strategy)) with_refits(neighbour);
    std::ranges::stable_sort(moves, {},
                             [this](std::size_t i) { return candidates_[i].bound->value; });
    return moves;
  }

  // Of the plans that decide late, or of the others.
  void improve(bool late) {
    while (rounds_ < effort_.rounds && tasks_ < effort_.tasks && improve_once(late)) ++rounds_;
  }

  // Evaluates strategies near the best, the most promising first; whether one of them is better.
  bool improve_once(bool late) {
    const auto from = fastest_of(late);
    if (!from) return false;
    const Seconds before = merit(*from);
    const Strategy strategy = candidates_[*from].plan.strategy;
    const bool hurries = late && tasks_ > effort_.tasks / kUnhurriedPart;
    const double kept = 1.0 - (hurries ? kLeastGainInHurry : kLeastGain);
    const auto gains = [&] { return merit(*fastest_of(late)) < before * kept; };
    const bool close = hurries || *candidates_[*from].bound > before * kCloseToBound;
    const auto moves = moves_from(strategy);
    for (std::size_t next = 0; next < moves.size() && tasks_ < effort_.tasks;) {
      const Seconds goal = std::min(merit(fastest()), merit(*fastest_of(late))) * kept;
      std::vector<std::size_t> batch;
      for (; next < moves.size() && batch.size() < kAtOnce; ++next) {
        // What can't beat the best even at its bound need not be run, nor what comes after it.
        if (!(*candidates_[moves[next]].bound < goal)) {
          next = moves.size();
          break;
        }
        batch.push_back(moves[next]);
      }
      evaluate(batch);
      if (close && gains()) return true;
    }
    return gains();
  }

  // Plans under a policy that puts urgent updates first, with more room for gradients that wait:
  // without it there is nothing to choose from. Several hosts keep to the plan's order.
  void try_late(const std::vector<std::size_t>& which) {
    if (late_policy_ == PolicyKind::planned || input_.machine.hosts > 1) return;
    std::vector<std::size_t> late;
    for (const auto i : which) {
      if (!may_win_late(i)) continue;
      Strategy strategy = candidates_[i].plan.strategy;
      strategy.policy = late_policy_;
      const auto least = strategy.host_gradient_slots;
      if (!input_.request.host_gradient_slots) {
        const auto all = static_cast<int>(block_submodels(input_, strategy));
        strategy.host_gradient_slots = std::max(least, all);
      }
      while (!consider(strategy, late) && strategy.host_gradient_slots > least) {
        strategy.host_gradient_slots = std::max(least, strategy.host_gradient_slots / 2);
      }
    }
    evaluate(late);
  }

  // What suits another policy may suit the plan's order nearly as well.
  void try_early(std::size_t i) {
    if (input_.request.policy) return;
    Strategy strategy = candidates_[i].plan.strategy;
    strategy.policy = PolicyKind::planned;
    std::vector<std::size_t> early;
    consider(strategy, early);
    evaluate(early);
  }

  bool may_win_late(std::size_t i) const {
    const bool any = fastest_of(true).has_value() || !input_.request.policy;
    return !any || *candidates_[i].bound * (1.0 + kGainOfPolicy) < merit(fastest());
  }

  PlanningResult best() {
    const std::size_t chosen = fastest();
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (!may_be_answer(i)) candidates_[i].step.reset();
    }
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
    auto reasons = explain_choice(input_, candidates_.all(), chosen);
    result.plan = std::move(candidates_[chosen].plan);
    result.plan.reasons = std::move(reasons);
    return result;
  }

  PlanningResult nothing_fits() {
    const auto least = std::ranges::min_element(candidates_.all(), {}, [](const Candidate& c) {
      return shortfall_of(c.plan).worst().value;
    });
    PlanningResult result;
    const std::size_t tried = candidates_.size();
    Strategy strategy = least->plan.strategy;
    strategy.policy = input_.request.policy.value_or(strategy.policy);
    result.plan = make_plan(input_.machine, input_.workload, strategy);
    result.plan.reasons.push_back(fmt::format(
        "none of {} combinations of micro-batch, cuts and places fits, with single slots and as "
        "much state on the GPUs as they hold; this one lacks least",
        tried));
    return result;
  }

  const PlanningInput& input_;
  const Evaluate& evaluate_;
  const SearchEffort& effort_;
  PolicyKind late_policy_;
  Candidates candidates_;
  std::size_t evaluated_ = 0;
  std::int64_t tasks_ = 0;  // of one step of all plans evaluated
  int rounds_ = 0;          // of improvement
};

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
    strategy.shares = plain_shares(input, strategy);
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
  return Search(input, evaluate, effort).run();
}

bool anything_fits(const PlanningInput& input) {
  return std::ranges::any_of(least_strategies(input), [&input](const Strategy& strategy) {
    return !fitting_plans(input, strategy).empty();
  });
}

Plan nearest_to_fitting(const PlanningInput& input) {
  std::vector<Plan> plans;
  for (const auto& strategy : least_strategies(input)) {
    plans.push_back(least_plan(input, strategy));
  }
  return std::move(*std::ranges::min_element(
      plans, {}, [](const Plan& plan) { return shortfall_of(plan).worst().value; }));
}

}  // namespace offstage::scheduler
