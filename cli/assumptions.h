#pragma once

#include <string>
#include <vector>

#include "platform/machine.h"
#include "scheduler/profile.h"

// Which numbers of a prediction nobody measured, so that no answer looks surer than it is.
namespace offstage::cli {

// Names of the numbers with Confidence::assumed in machine and profile, each once.
std::vector<std::string> assumed_numbers(const platform::Machine& machine,
                                         const scheduler::Profile& profile);

// A line or two for people; empty when there are none.
std::string describe_assumptions(const std::vector<std::string>& assumed);

}  // namespace offstage::cli
