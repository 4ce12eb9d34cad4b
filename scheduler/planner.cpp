#include "scheduler/planner.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "platform/error.h"
#include "platform/format.h"
#include "scheduler/cost_model.h"
#include "scheduler/metrics.h"
#include "scheduler/plan_reasons.h"
#include "scheduler/step_graph.h"

namespace offstage::scheduler {
namespace {

using platform::Bytes;
using platform::Seconds;

// Simulated at most; the bound picks them.
constexpr std::size_t kFinalists = 8;
// More sequences at once than this never paid in a GPU's GEMM tables, which are flat from 8,192
// rows on (platform/catalog).
constexpr std::int64_t kLargestMicroBatch = 64;

std::int64_t sequences_per_gpu(const PlanningInput& input) {
  const auto gpus = static_cast<std::int64_t>(input.machine.gpus.size());
  const std::int64_t batch = input.workload.global_batch;
  if (batch % gpus != 0) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format("global_batch {} can't be dealt evenly to {} GPUs; the nearest that can: "
                    "{} and {}",
                    batch, gpus, std::max<std::int64_t>(1, batch / gpus) * gpus,
                    (batch / gpus + 1) * gpus));
  }
  return batch / gpus;
}

std::vector<std::int64_t> micro_batch_choices(const PlanningInput& input) {
  if (input.request.micro_batch) return {*input.request.micro_batch};
  const std::int64_t sequences = sequences_per_gpu(input);
  std::vector<std::int64_t> choices;
  for (std::int64_t d = 1; d <= std::min(sequences, kLargestMicroBatch); ++d) {
    if (sequences % d == 0) choices.push_back(d);
  }
  return choices;
}

std::vector<std::int64_t> pack_choices(const PlanningInput& input) {
  if (input.request.layers_per_submodel) return {*input.request.layers_per_submodel};
  std::vector<std::int64_t> choices;
  for (std::int64_t pack = 1; pack <= input.workload.model.layers; pack *= 2) {
    choices.push_back(pack);
  }
  return choices;
}

// The combinations in the order in which equally good ones are preferred.
std::vector<Strategy> enumerate(const PlanningInput& input) {
  const auto& request = input.request;
  const std::vector<int> slots = {2, 1};
  const auto slot_choices = [&slots](const std::optional<int>& fixed) {
    return fixed ? std::vector<int>{*fixed} : slots;
  };
  const auto places = request.activations ? std::vector<ActivationPlace>{*request.activations}
                                          : std::vector<ActivationPlace>{ActivationPlace::gpu,
                                                                         ActivationPlace::cpu};
  std::vector<Strategy> strategies;
  for (const auto micro_batch : micro_batch_choices(input)) {
    for (const auto pack : pack_choices(input)) {
      for (const auto place : places) {
        for (const int weight_slots : slot_choices(request.weight_slots)) {
          for (const int gradient_slots : slot_choices(request.gradient_slots)) {
            Strategy strategy;
            strategy.micro_batch = micro_batch;
            strategy.layers_per_submodel = pack;
            strategy.activations = place;
            strategy.weight_slots = weight_slots;
            strategy.gradient_slots = gradient_slots;
            strategy.host_gradient_slots =
                request.host_gradient_slots.value_or(strategy.host_gradient_slots);
            strategy.spare_activation_slots =
                request.spare_activation_slots.value_or(strategy.spare_activation_slots);
            strategy.policy = request.policy.value_or(strategy.policy);
            strategy.submit_ahead = request.submit_ahead.value_or(strategy.submit_ahead);
            strategies.push_back(strategy);
          }
        }
      }
    }
  }
  return strategies;
}

Bytes shortfall(const Plan& plan) {
  const auto worst = plan.memory.worst();
  if (!worst) return {};
  const auto& pool = plan.memory.pools[*worst];
  return pool.total() - pool.capacity;
}

Seconds bound_of(const Plan& plan, const Profile& profile) {
  const TaskGraph graph = make_step_graph(plan, 1);
  return step_bound(plan, graph, make_costs(plan, profile, graph)).seconds;
}

// Single slots save memory and never time, so they matter only where double ones do not fit.
void drop_needless_single_slots(std::vector<Candidate>& candidates) {
  const auto same_but_slots = [](const Strategy& a, const Strategy& b) {
    return a.micro_batch == b.micro_batch && a.layers_per_submodel == b.layers_per_submodel &&
           a.activations == b.activations && a.weight_slots >= b.weight_slots &&
           a.gradient_slots >= b.gradient_slots;
  };
  std::vector<Candidate> kept;
  for (auto& candidate : candidates) {
    const bool beaten = std::ranges::any_of(kept, [&](const Candidate& other) {
      return other.fits && same_but_slots(other.plan.strategy, candidate.plan.strategy);
    });
    if (!beaten) kept.push_back(std::move(candidate));
  }
  candidates = std::move(kept);
}

PlanningResult nothing_fits(std::vector<Candidate>& candidates) {
  const auto least = std::ranges::min_element(
      candidates, {}, [](const Candidate& c) { return shortfall(c.plan).value; });
  PlanningResult result;
  result.plan = std::move(least->plan);
  result.plan.reasons.push_back(fmt::format(
      "none of {} combinations of the open knobs fits; this one lacks least", candidates.size()));
  return result;
}

}  // namespace

PlanningResult choose_plan(const PlanningInput& input, const Evaluate& evaluate) {
  std::vector<Candidate> candidates;
  for (const auto& strategy : enumerate(input)) {
    Candidate candidate;
    candidate.plan = make_plan(input.machine, input.workload, strategy);
    candidate.fits = candidate.plan.memory.fits();
    candidates.push_back(std::move(candidate));
  }
  drop_needless_single_slots(candidates);
  std::vector<std::size_t> ranking;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!candidates[i].fits) continue;
    candidates[i].bound = bound_of(candidates[i].plan, input.profile);
    ranking.push_back(i);
  }
  if (ranking.empty()) return nothing_fits(candidates);
  std::ranges::stable_sort(ranking, {}, [&](std::size_t i) { return candidates[i].bound->value; });
  ranking.resize(std::min(ranking.size(), kFinalists));

  std::vector<Plan> finalists;
  for (const auto i : ranking) finalists.push_back(candidates[i].plan);
  const auto steps = evaluate(finalists);
  for (std::size_t i = 0; i < ranking.size(); ++i) candidates[ranking[i]].step = steps[i];
  std::ranges::stable_sort(ranking, {}, [&](std::size_t i) { return candidates[i].step->value; });

  PlanningResult result;
  result.fits = true;
  result.step = *candidates[ranking[0]].step;
  if (ranking.size() > 1) {
    result.runner_up = candidates[ranking[1]].plan;
    result.runner_up_step = candidates[ranking[1]].step;
  }
  auto reasons = explain_choice(input.request, candidates, ranking[0]);
  result.plan = std::move(candidates[ranking[0]].plan);
  result.plan.reasons = std::move(reasons);
  return result;
}

}  // namespace offstage::scheduler
