#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "scheduler/plan.h"

// A plan as a JSON file, and its hash. The file names the platform (and carries a digest of it),
// and carries workload and strategy in full; reading it derives cuts and ledger again and refuses a
// file whose figures no longer follow.
namespace offstage::scheduler {

// A digest of everything that decides the task graph and its sizes: 32 hex digits (XXH3-128).
std::string plan_hash(const Plan& plan);

nlohmann::json plan_to_json(const Plan& plan);
void write_plan(const Plan& plan, const std::string& path);

// Whether a file is a plan rather than a run config: JSON with the key `offstage_plan`.
bool is_plan_file(const std::string& path);

// `machine` is the one the file names, loaded by the caller (see plan_platform).
// Errors: Error(bad_input) with place: malformed, another version, another machine than the plan
// was made for, figures that do not follow from the rest.
std::string plan_platform(const std::string& path);
Plan read_plan(const std::string& path, const platform::Machine& machine);

}  // namespace offstage::scheduler
