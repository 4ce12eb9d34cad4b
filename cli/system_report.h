#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/system_planning.h"
#include "scheduler/systems/system_plan.h"

// How a published system is shown by `plan` and `simulate`: as text for people, and as JSON with
// the keys of our own plans where they have a meaning.
namespace offstage::cli {

// What `plan` knows beside the plan. Without a prediction it does not fit.
struct SystemReport {
  const scheduler::systems::SystemPlan& plan;
  const SimulatedSystem* prediction = nullptr;
  std::string profile;
  std::vector<std::string> assumed;  // numbers nobody measured
};
std::string describe_system_plan(const SystemReport& report);
nlohmann::json system_plan_json(const SystemReport& report);

std::string describe_system_simulation(const scheduler::systems::SystemPlan& plan,
                                       const SimulatedSystem& simulated);
nlohmann::json system_simulation_json(const scheduler::systems::SystemPlan& plan,
                                      const SimulatedSystem& simulated);

// Every knob by its name in a config.
nlohmann::json system_strategy_json(const scheduler::systems::SystemStrategy& strategy);

}  // namespace offstage::cli
