#include "sim/system_step.h"

#include <cstddef>
#include <map>
#include <string>

#include <fmt/format.h>

#include "scheduler/strategy.h"
#include "scheduler/trace.h"
#include "sim/process_pool.h"

namespace offstage::sim {

using scheduler::TaskId;
using scheduler::TaskKind;

namespace {

// Enough for an engine never to wait for its next task: these systems submit in program order.
constexpr int kSubmitAhead = 16;

// The step, then kind and busy seconds in pairs.
std::vector<double> step_of(const SystemCase& question) {
  const auto step = make_system_graph(*question.plan, *question.profile);
  const auto result = simulate_here(simulation_of(*question.plan, step));
  std::map<TaskKind, double> busy;
  for (TaskId task = 0; task < step.graph.size(); ++task) {
    if (step.graph.tasks[task].gpu != 0) continue;
    const auto& interval = result.trace.tasks[task];
    busy[step.graph.tasks[task].kind] += (interval.end - interval.start).value;
  }
  std::vector<double> values{scheduler::steady_step(step.graph, result.trace).value};
  for (const auto& [kind, seconds] : busy) {
    values.push_back(static_cast<double>(kind));
    values.push_back(seconds);
  }
  return values;
}

}  // namespace

Simulation simulation_of(const scheduler::systems::SystemPlan& plan,
                         const scheduler::systems::CostedGraph& step,
                         const scheduler::Disturbances* disturbances) {
  return {.machine = plan.machine,
          .graph = step.graph,
          .costs = step.costs,
          .policy = scheduler::PolicyKind::planned,
          .submit_ahead = kSubmitAhead,
          .disturbances = disturbances};
}

std::vector<SystemStep> simulate_systems(std::span<const SystemCase> cases, int workers) {
  std::vector<ProcessJob> jobs;
  for (const SystemCase& question : cases) {
    jobs.push_back({fmt::format("simulation of {}", to_string(question.plan->strategy.system)),
                    [&question] { return step_of(question); }});
  }
  std::vector<SystemStep> steps;
  for (const auto& values : run_in_processes(jobs, workers)) {
    SystemStep step{{values.front()}, {}};
    for (std::size_t i = 1; i + 1 < values.size(); i += 2) {
      step.kinds.push_back({static_cast<TaskKind>(static_cast<int>(values[i])), {values[i + 1]}});
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace offstage::sim
