#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "platform/units.h"
#include "scheduler/plan.h"
#include "scheduler/profile.h"

// The planner's `Evaluate` on the simulator.
//
//   choose_plan(input, [&](std::span<const Plan> plans) {
//     return simulated_steps(plans, profile, default_workers());
//   });
namespace offstage::sim {

// Consecutive steps simulated when nobody says otherwise: the first is cold, the last has nothing
// behind it, the one between is the steady state (scheduler/trace.h).
constexpr std::uint32_t kSimulatedSteps = 3;

// Steady-state seconds of a step of each plan, in order. Each plan becomes a graph, costs and a
// trace in a child process of its own, at most `workers` at a time.
// Errors, Thread: as simulate_all.
std::vector<platform::Seconds> simulated_steps(std::span<const scheduler::Plan> plans,
                                               const scheduler::Profile& profile, int workers);

}  // namespace offstage::sim
