#include "sim/evaluate.h"

#include <fmt/format.h>

#include "scheduler/cost_model.h"
#include "scheduler/step_graph.h"
#include "sim/process_pool.h"
#include "sim/simulate.h"

namespace offstage::sim {
namespace {

platform::Seconds step_of(const scheduler::Plan& plan, const scheduler::Profile& profile) {
  const auto graph = scheduler::make_step_graph(plan, kSimulatedSteps);
  const auto costs = scheduler::make_costs(plan, profile, graph);
  const auto result = simulate_here({.machine = plan.machine,
                                     .graph = graph,
                                     .costs = costs,
                                     .policy = plan.strategy.policy,
                                     .submit_ahead = plan.strategy.submit_ahead});
  return scheduler::steady_step(graph, result.trace);
}

}  // namespace

std::vector<platform::Seconds> simulated_steps(std::span<const scheduler::Plan> plans,
                                               const scheduler::Profile& profile, int workers) {
  std::vector<ProcessJob> jobs;
  for (const scheduler::Plan& plan : plans) {
    jobs.push_back({fmt::format("simulation of plan {}", jobs.size()), [&plan, &profile] {
                      return std::vector<double>{step_of(plan, profile).value};
                    }});
  }
  std::vector<platform::Seconds> steps;
  for (const auto& values : run_in_processes(jobs, workers)) steps.push_back({values.front()});
  return steps;
}

}  // namespace offstage::sim
