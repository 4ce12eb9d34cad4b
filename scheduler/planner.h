#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scheduler/plan.h"
#include "scheduler/profile.h"

// Chooses what the user left open: cuts, micro-batch and slots that fit, and says why. It does not
// know the simulator: it is handed a function that evaluates plans.
namespace offstage::scheduler {

// Steady-state seconds of a step for each plan, in order.
using Evaluate = std::function<std::vector<platform::Seconds>(std::span<const Plan>)>;

struct PlanningInput {
  const platform::Machine& machine;
  const workloads::Workload& workload;
  const Profile& profile;
  StrategyRequest request;
};

struct PlanningResult {
  Plan plan;               // the best; when nothing fits, the one that lacks least
  platform::Seconds step;  // as evaluated; of the best fitting plan
  std::optional<Plan> runner_up;
  std::optional<platform::Seconds> runner_up_step;
  bool fits = false;
};

// Deterministic. Errors: Error(bad_input) when no micro-batch divides the global batch over the
// GPUs.
PlanningResult choose_plan(const PlanningInput& input, const Evaluate& evaluate);

}  // namespace offstage::scheduler
