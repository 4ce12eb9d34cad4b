#include "cli/planning.h"

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/output.h"
#include "platform/document.h"
#include "platform/error.h"
#include "scheduler/plan_file.h"
#include "scheduler/step_graph.h"
#include "sim/evaluate.h"
#include "sim/process_pool.h"
#include "sim/simulate.h"

namespace offstage::cli {
namespace {

using scheduler::Plan;
using scheduler::Profile;

sim::Simulation simulation_of(const Plan& plan, const scheduler::TaskGraph& graph,
                              const std::vector<scheduler::TaskCost>& costs,
                              const scheduler::Disturbances* disturbances) {
  return {.machine = plan.machine,
          .graph = graph,
          .costs = costs,
          .policy = plan.strategy.policy,
          .submit_ahead = plan.strategy.submit_ahead,
          .disturbances = disturbances};
}

scheduler::PlanningResult choose_plan(const scheduler::RunConfig& config,
                                      const scheduler::Evaluate& evaluate) {
  try {
    return scheduler::choose_plan({.machine = config.machine,
                                   .workload = config.workload,
                                   .profile = config.profile,
                                   .request = config.strategy},
                                  evaluate);
  } catch (const Error& error) {
    throw placed(error, config.file);
  }
}

using Simulate = sim::SimulationResult (*)(const sim::Simulation&);

Simulated simulated_by(Simulate simulate, const Plan& plan, const Profile& profile,
                       std::uint32_t steps, const scheduler::Disturbances* disturbances) {
  const auto begin = std::chrono::steady_clock::now();
  Simulated simulated;
  simulated.graph = scheduler::make_step_graph(plan, steps);
  simulated.costs = scheduler::make_costs(plan, profile, simulated.graph);
  sim::SimulationResult result =
      simulate(simulation_of(plan, simulated.graph, simulated.costs, disturbances));
  simulated.trace = std::move(result.trace);
  simulated.metrics = scheduler::measure(plan, simulated.graph, simulated.costs, simulated.trace);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  simulated.wall = {wall.count()};
  return simulated;
}

}  // namespace

// The planner sees no files.
Error placed(const Error& error, const std::string& file) {
  if (error.code() != ErrorCode::bad_input || error.where()) return error;
  const std::string message = error.what();
  const platform::Node root = platform::Document::load(file).root();
  std::optional<platform::Node> at;
  std::size_t first = std::string::npos;
  for (const char* section : {"workload", "strategy"}) {
    const auto node = root.find(section);
    if (!node || !node->is_map()) continue;
    for (const std::string& key : node->keys()) {
      const std::size_t position = message.find(key);
      if (position >= first) continue;
      first = position;
      at = node->at(key);
    }
  }
  return (at ? *at : root).error(message);
}

scheduler::Evaluate simulator_of(const Profile& profile, int workers) {
  return [&profile, workers](std::span<const Plan> plans) {
    return sim::simulated_steps(plans, profile, workers);
  };
}

Question read_question(const std::string& file, const scheduler::DataDirectories& directories) {
  Question question{scheduler::load_run_config(file, directories), {}};
  const platform::Document document = platform::Document::load(file);
  if (scheduler::is_plan_document(document)) {
    question.plan = scheduler::read_plan(document, question.config.machine);
  }
  return question;
}

scheduler::PlanningResult answer(const Question& question) {
  const scheduler::RunConfig& config = question.config;
  const auto simulate = simulator_of(config.profile, sim::default_workers());
  const scheduler::Evaluate evaluate = [&simulate](std::span<const Plan> plans) {
    show_progress(fmt::format("simulating {} plans ...", plans.size()));
    auto steps = simulate(plans);
    show_progress("");
    return steps;
  };
  if (!question.plan) return choose_plan(config, evaluate);
  scheduler::PlanningResult result;
  result.plan = *question.plan;
  result.fits = result.plan.memory.fits();
  if (result.fits) result.step = evaluate(std::span(&result.plan, 1)).front();
  return result;
}

void require_fit(const scheduler::Ledger& memory) {
  if (memory.fits()) return;
  throw Error(ErrorCode::does_not_fit, "the plan does not fit: " + memory.shortfall_message());
}

Simulated simulate_plan(const Plan& plan, const Profile& profile, std::uint32_t steps,
                        const scheduler::Disturbances* disturbances) {
  return simulated_by(sim::simulate, plan, profile, steps, disturbances);
}

Simulated simulate_plan_here(const Plan& plan, const Profile& profile, std::uint32_t steps,
                             const scheduler::Disturbances* disturbances) {
  return simulated_by(sim::simulate_here, plan, profile, steps, disturbances);
}

}  // namespace offstage::cli
