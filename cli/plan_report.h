#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/planning.h"
#include "scheduler/ledger.h"
#include "scheduler/plan.h"

// How a plan is shown: as text for people, and as the JSON object of `plan --json`.
namespace offstage::cli {

// "13.0 B parameters, 40 layers; 8 GPUs; ..." in aligned lines.
std::string describe_workload(const scheduler::Plan& plan);

// One table for each set of pools that are alike.
std::string describe_memory(const scheduler::Ledger& ledger);

// [{pool, capacity_bytes, total_bytes, loading_bytes, free_bytes, lines[]}]
nlohmann::json memory_json(const scheduler::Ledger& ledger);

// Each knob's value, and why when the search chose it.
std::string describe_strategy(const scheduler::Plan& plan);

// What `plan` knows beside the plan. Without a prediction the plan does not fit.
struct PlanReport {
  const scheduler::PlanningResult& result;
  const Simulated* prediction = nullptr;
  std::vector<std::string> assumed;  // numbers nobody measured
};
std::string describe_plan(const PlanReport& report);
nlohmann::json plan_report_json(const PlanReport& report);

}  // namespace offstage::cli
