#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "platform/error.h"
#include "platform/units.h"
#include "scheduler/metrics.h"
#include "scheduler/planner.h"
#include "scheduler/run_config.h"
#include "scheduler/task_graph.h"
#include "scheduler/trace.h"

// From a file to a plan and its prediction: what `plan`, `simulate` and `train` have in common.
namespace offstage::cli {

// A run config, or a plan made earlier.
struct Question {
  scheduler::RunConfig config;
  std::optional<scheduler::Plan> plan;  // when the file is one
};

// Errors: Error(bad_input) with place.
Question read_question(const std::string& file, const scheduler::DataDirectories& directories);

// The plan of a question: the one it brings, or the best the search finds, simulating finalists on
// all cores.
// Errors: as choose_plan and sim::simulate_all.
scheduler::PlanningResult answer(const Question& question);

// Hands plans to the simulator, at most `workers` of them at a time. Borrows the profile.
scheduler::Evaluate simulator_of(const scheduler::Profile& profile, int workers);

// A planner's bad_input without a place, at the key of the config that its message names first.
Error placed(const Error& error, const std::string& file);

// Errors: Error(does_not_fit) with the pool, the shortfall and the pool's lines.
void require_fit(const scheduler::Ledger& memory);

struct Simulated {
  scheduler::TaskGraph graph;
  std::vector<scheduler::TaskCost> costs;
  scheduler::Trace trace;
  scheduler::Metrics metrics;
  platform::Seconds wall;  // real time of everything from the task graph on
};

// `disturbances`: null: all goes as planned.
Simulated simulate_plan(const scheduler::Plan& plan, const scheduler::Profile& profile,
                        std::uint32_t steps, const scheduler::Disturbances* disturbances = nullptr);
// In this very process, which can do it once: for jobs that run in a process of their own anyway.
Simulated simulate_plan_here(const scheduler::Plan& plan, const scheduler::Profile& profile,
                             std::uint32_t steps,
                             const scheduler::Disturbances* disturbances = nullptr);

}  // namespace offstage::cli
