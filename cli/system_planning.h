#pragma once

#include <cstdint>
#include <string>

#include "cli/planning.h"
#include "platform/units.h"
#include "scheduler/metrics.h"
#include "scheduler/run_config.h"
#include "scheduler/systems/system_plan.h"
#include "scheduler/trace.h"

// From a config whose strategy names a published system to its plan and its simulated step.
namespace offstage::cli {

// Errors: those of make_system_plan, at the key of the config that the message names first.
// Precondition: config.system.
scheduler::systems::SystemPlan plan_system(const scheduler::RunConfig& config);

struct SimulatedSystem {
  scheduler::systems::CostedGraph step;
  scheduler::Trace trace;
  scheduler::Metrics metrics;  // memory: the ledger's totals
  platform::Seconds wall;
};
SimulatedSystem simulate_system(const scheduler::systems::SystemPlan& plan,
                                const scheduler::Profile& profile,
                                const scheduler::Disturbances* disturbances = nullptr);
// In this very process, which can do it once.
SimulatedSystem simulate_system_here(const scheduler::systems::SystemPlan& plan,
                                     const scheduler::Profile& profile,
                                     const scheduler::Disturbances* disturbances = nullptr);

// For commands that work with our own plans only.
// Errors: Error(bad_input) at `strategy.system`, naming the command.
void require_own_method(const scheduler::RunConfig& config, const std::string& command);

}  // namespace offstage::cli
