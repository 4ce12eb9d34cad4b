#include "sim/simulate.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "scheduler/manager.h"
#include "scheduler/policy.h"
#include "sim/process_pool.h"
#include "sim/simulated_backend.h"

namespace offstage::sim {
namespace {

// Each interval as two numbers, then the wall time.
std::vector<double> encode(const SimulationResult& result) {
  std::vector<double> values;
  values.reserve(2 * result.trace.tasks.size() + 1);
  for (const auto& interval : result.trace.tasks) {
    values.push_back(interval.start.value);
    values.push_back(interval.end.value);
  }
  values.push_back(result.wall.value);
  return values;
}

SimulationResult decode(const std::vector<double>& values) {
  SimulationResult result;
  result.trace.tasks.reserve(values.size() / 2);
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
    result.trace.tasks.push_back({{values[i]}, {values[i + 1]}});
  }
  result.wall = {values.back()};
  return result;
}

}  // namespace

SimulationResult simulate_here(const Simulation& simulation) {
  const auto begin = std::chrono::steady_clock::now();
  const auto known = scheduler::known_costs(simulation.machine, simulation.costs);
  const scheduler::Disturbances* disturbances = simulation.disturbances;
  std::vector<scheduler::TaskCost> disturbed;
  if (disturbances != nullptr) {
    disturbed = disturbed_costs(simulation.costs, simulation.graph, *disturbances);
  }
  SimulatedBackend backend(simulation.machine, simulation.graph,
                           disturbances != nullptr ? disturbed : simulation.costs);
  const auto reach_step = [&](std::uint32_t step) {
    if (disturbances == nullptr || disturbances->links.empty()) return;
    backend.scale_links(link_factors(simulation.machine, *disturbances, step));
  };
  scheduler::RunObserver observer;
  observer.on_step_end = [&](std::uint32_t step, platform::Seconds /*end*/) {
    reach_step(step + 1);
  };
  reach_step(0);
  const auto policy =
      scheduler::make_policy(simulation.policy, simulation.graph, known, simulation.submit_ahead);
  SimulationResult result;
  result.trace = scheduler::Manager(simulation.graph, backend, *policy).run(observer);
  result.wall = {std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  return result;
}

std::vector<SimulationResult> simulate_all(std::span<const Simulation> simulations, int workers) {
  std::vector<ProcessJob> jobs;
  for (const Simulation& simulation : simulations) {
    jobs.push_back({fmt::format("simulation {}", jobs.size()),
                    [&simulation] { return encode(simulate_here(simulation)); }});
  }
  std::vector<SimulationResult> results;
  for (const auto& values : run_in_processes(jobs, workers)) results.push_back(decode(values));
  return results;
}

SimulationResult simulate(const Simulation& simulation) {
  return std::move(simulate_all({&simulation, 1}, 1).front());
}

}  // namespace offstage::sim
