#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "scheduler/metrics.h"

// How a simulated step is shown, whoever's plan it is of.
namespace offstage::cli {

// Step, bound and efficiency, then engines, busiest links and memory as tables.
std::string describe_metrics(const scheduler::Metrics& metrics);

// step_s, tokens_per_s, mfu, bound_s, bound_by, efficiency, engines[], links[], memory[].
nlohmann::json metrics_json(const scheduler::Metrics& metrics);

}  // namespace offstage::cli
