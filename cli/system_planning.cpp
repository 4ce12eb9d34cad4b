#include "cli/system_planning.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "platform/document.h"
#include "platform/error.h"
#include "sim/simulate.h"
#include "sim/system_step.h"

namespace offstage::cli {

using scheduler::systems::SystemPlan;

SystemPlan plan_system(const scheduler::RunConfig& config) {
  try {
    return make_system_plan(config.machine, config.workload, *config.system, config.profile);
  } catch (const Error& error) {
    throw placed(error, config.file);
  }
}

namespace {

using Simulate = sim::SimulationResult (*)(const sim::Simulation&);

SimulatedSystem simulated_by(Simulate simulate, const SystemPlan& plan,
                             const scheduler::Profile& profile,
                             const scheduler::Disturbances* disturbances) {
  const auto begin = std::chrono::steady_clock::now();
  SimulatedSystem simulated;
  simulated.step = make_system_graph(plan, profile);
  auto result = simulate(sim::simulation_of(plan, simulated.step, disturbances));
  simulated.trace = std::move(result.trace);
  const std::int64_t tokens = plan.workload.tokens_per_step();
  simulated.metrics = scheduler::measure_pace(
      plan.machine,
      {.tokens = tokens,
       .flops = plan.flops_per_token() * static_cast<double>(tokens),
       .peak = scheduler::peak_of(plan.machine, static_cast<std::size_t>(plan.gpus()),
                                  plan.workload.precision)},
      simulated.step.graph, simulated.step.costs, simulated.trace);
  for (const auto& pool : plan.memory.pools) {
    simulated.metrics.memory.push_back({pool.name, pool.total(), pool.capacity});
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  simulated.wall = {wall.count()};
  return simulated;
}

}  // namespace

SimulatedSystem simulate_system(const SystemPlan& plan, const scheduler::Profile& profile,
                                const scheduler::Disturbances* disturbances) {
  return simulated_by(sim::simulate, plan, profile, disturbances);
}

SimulatedSystem simulate_system_here(const SystemPlan& plan, const scheduler::Profile& profile,
                                     const scheduler::Disturbances* disturbances) {
  return simulated_by(sim::simulate_here, plan, profile, disturbances);
}

void require_own_method(const scheduler::RunConfig& config, const std::string& command) {
  if (!config.system) return;
  throw platform::Document::load(config.file)
      .root()
      .at("strategy")
      .at("system")
      .error(fmt::format("{} works with offstage's own plans; `plan` and `simulate` compare them "
                         "with {}",
                         command, to_string(config.system->system)));
}

}  // namespace offstage::cli
