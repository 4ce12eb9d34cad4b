#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "scheduler/profile.h"

// How far a predicted step may be off: the profile's step_range beside the prediction, wherever a
// command says how long a step takes.
namespace offstage::cli {

// Adds step_s_low, step_s_high and step_range (how it is known) to an object that has step_s; null
// where nothing was predicted or the profile has no range.
void add_step_interval(nlohmann::json& object, const scheduler::Profile& profile);

// "nine of ten within 1.02 s to 1.31 s (...)" on a line of its own; empty without a range.
std::string describe_step_interval(platform::Seconds step, const scheduler::Profile& profile);

}  // namespace offstage::cli
