#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scheduler/planner.h"

// Why a plan was chosen, in words and numbers, from the candidates it was chosen among.
namespace offstage::scheduler {

struct Candidate {
  Plan plan;
  bool fits = false;
  std::optional<platform::Seconds> bound;  // of those that fit
  std::optional<platform::Seconds> step;   // of those that were simulated
};

// One sentence for each knob: fixed by the user, or what the other values would have cost.
std::vector<std::string> explain_choice(const PlanningInput& input,
                                        const std::vector<Candidate>& candidates,
                                        std::size_t chosen);

}  // namespace offstage::scheduler
