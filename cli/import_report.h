#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "imports/import.h"
#include "platform/units.h"
#include "scheduler/planner.h"
#include "scheduler/systems/system_plan.h"

// How an imported file is answered: as text, and as JSON.
namespace offstage::cli {

// Our own plan for the same machine, model and batch.
struct OwnAnswer {
  std::optional<scheduler::PlanningResult> result;
  std::string refusal;  // why there is none
};

struct ImportAnswer {
  std::string file;
  imports::Imported imported;
  // Both empty when the file has faults; without a step the system does not fit.
  std::optional<scheduler::systems::SystemPlan> plan;
  std::optional<platform::Seconds> step;
  std::string profile;
  std::vector<std::string> assumed;  // numbers nobody measured
  std::optional<OwnAnswer> own;
};

std::string describe_import(const ImportAnswer& answer);
nlohmann::json import_json(const ImportAnswer& answer);

// The findings that are faults, one a line, each with its place.
std::string describe_faults(const ImportAnswer& answer);

}  // namespace offstage::cli
