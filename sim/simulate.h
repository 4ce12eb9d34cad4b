#pragma once

#include <span>
#include <vector>

#include "platform/machine.h"
#include "platform/units.h"
#include "scheduler/cost_model.h"
#include "scheduler/disturbances.h"
#include "scheduler/strategy.h"
#include "scheduler/task_graph.h"
#include "scheduler/trace.h"

// Simulates task graphs, each in a child process of its own. Deterministic to the bit.
//
//   const auto costs = make_costs(plan, profile, graph);
//   const auto result = simulate({plan.machine, graph, costs, strategy.policy,
//   strategy.submit_ahead});
namespace offstage::sim {

// Borrows machine, graph, costs and disturbances.
struct Simulation {
  const platform::Machine& machine;
  const scheduler::TaskGraph& graph;
  const std::vector<scheduler::TaskCost>& costs;  // by TaskId
  scheduler::PolicyKind policy = scheduler::PolicyKind::planned;
  int submit_ahead = 4;  // tasks in flight per engine
  // What the policy does not know of; null: nothing is disturbed.
  const scheduler::Disturbances* disturbances = nullptr;
};

struct SimulationResult {
  scheduler::Trace trace;
  platform::Seconds wall;  // real time it took in its process, set-up included
};

// Errors (both): those of Manager::run and FlowEngine; Error(device) when the process dies.
// Thread (both): as run_in_processes.
SimulationResult simulate(const Simulation& simulation);
std::vector<SimulationResult> simulate_all(std::span<const Simulation> simulations, int workers);

// In this very process, which can do it once: for jobs that run in a process of their own anyway.
SimulationResult simulate_here(const Simulation& simulation);

}  // namespace offstage::sim
