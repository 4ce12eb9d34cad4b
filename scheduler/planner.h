#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scheduler/plan.h"
#include "scheduler/profile.h"

// Chooses what the user left open: cuts, micro-batch, slots and places that fit, and says why. It
// does not know the simulator: it is handed a function that evaluates plans.
//
// The bound of every combination that fits comes first, cheaply; then the best are evaluated, and
// the best of those is improved knob by knob, refilling the GPUs after each change, until no change
// helps.
namespace offstage::scheduler {

// Steady-state seconds of a step for each plan, in order.
using Evaluate = std::function<std::vector<platform::Seconds>(std::span<const Plan>)>;

struct PlanningInput {
  const platform::Machine& machine;
  const workloads::Workload& workload;
  const Profile& profile;
  StrategyRequest request;
};

// How hard to look. The default is for a plan that will run; `quick` for one of many points.
struct SearchEffort {
  std::size_t finalists = 8;  // evaluated after their bounds are known
  int rounds = 40;            // of improvement at most
  // No more rounds once the evaluated plans have so many tasks in one step: with the simulator
  // that is about 10 s on two cores.
  std::int64_t tasks = 1'000'000;
};
constexpr SearchEffort kQuick{.finalists = 1, .rounds = 0};

struct PlanningResult {
  Plan plan;               // the best; when nothing fits, the one that lacks least
  platform::Seconds step;  // as evaluated; of the best fitting plan
  std::optional<Plan> runner_up;
  std::optional<platform::Seconds> runner_up_step;
  bool fits = false;
  std::size_t evaluated = 0;  // plans handed to `evaluate`
};

// Deterministic. Errors: Error(bad_input) when the global batch can't be dealt to the GPUs, or when
// a fixed knob is impossible.
PlanningResult choose_plan(const PlanningInput& input, const Evaluate& evaluate,
                           const SearchEffort& effort = {});

// Whether any strategy fits, without asking how fast: the plan that needs least is the witness.
bool anything_fits(const PlanningInput& input);

// Where nothing fits: the plan that lacks least. Its ledger says what is in the way.
Plan nearest_to_fitting(const PlanningInput& input);

}  // namespace offstage::scheduler
