#pragma once

#include <span>
#include <vector>

#include "platform/units.h"
#include "scheduler/profile.h"
#include "scheduler/systems/system_plan.h"
#include "scheduler/task_graph.h"
#include "sim/simulate.h"

// How long a published system's step takes on the simulator, and where its time goes.
//
//   const auto steps = simulate_systems({{&plan, &profile}}, default_workers());
//   steps[0].step;   // seconds
namespace offstage::sim {

// Of one step, as these systems submit it: in program order. Borrows both.
// `disturbances`: borrowed; may be null.
Simulation simulation_of(const scheduler::systems::SystemPlan& plan,
                         const scheduler::systems::CostedGraph& step,
                         const scheduler::Disturbances* disturbances = nullptr);

// Borrows both.
struct SystemCase {
  const scheduler::systems::SystemPlan* plan = nullptr;
  const scheduler::Profile* profile = nullptr;
};

struct KindTime {
  scheduler::TaskKind kind = scheduler::TaskKind::forward;
  platform::Seconds busy;  // of the first GPU's tasks of that kind
};

struct SystemStep {
  platform::Seconds step;
  std::vector<KindTime> kinds;  // those that occur, in TaskKind's order
};

// In order; each in a child process of its own, at most `workers` at a time.
// Errors, Thread: as run_in_processes, and those of make_system_graph.
std::vector<SystemStep> simulate_systems(std::span<const SystemCase> cases, int workers);

}  // namespace offstage::sim
