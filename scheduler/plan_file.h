#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "platform/document.h"
#include "scheduler/plan.h"

// A plan as a JSON file, and its hash. The file says how the platform is loaded and carries
// workload and strategy in full; reading it derives cuts and ledger again and refuses a file whose
// figures no longer follow.
//
//   const auto document = Document::load(path);
//   if (is_plan_document(document)) plan = read_plan(document,
//   machine_of(plan_platform(document)));
namespace offstage::scheduler {

// A digest of everything that decides the task graph and its sizes: 32 hex digits (XXH3-128).
std::string plan_hash(const Plan& plan);

nlohmann::json plan_to_json(const Plan& plan);
// Errors: Error(io).
void write_plan(const Plan& plan, const std::string& path);

// Whether a file is a plan rather than a run config: it has the key `offstage_plan`.
bool is_plan_document(const platform::Document& document);
// The `platform` value of a plan: what a run config's key of that name may hold.
platform::Node plan_platform(const platform::Document& document);

// `machine` is the one the file names, loaded by the caller.
// Errors: Error(bad_input) with place: malformed, another version, figures that do not follow from
// the rest or from the machine.
Plan read_plan(const platform::Document& document, const platform::Machine& machine);

}  // namespace offstage::scheduler
