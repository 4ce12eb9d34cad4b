#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/plan_reasons.h"
#include "scheduler/plan_space.h"

// The plans that a search knows, each strategy once. Private to planner.h.
namespace offstage::scheduler {

class Candidates {
 public:
  // Every combination of the open knobs: the plans that fit, and where none does the one that needs
  // least. All with `policy`, whatever the request says.
  // Errors: as choose_plan.
  Candidates(const PlanningInput& input, PolicyKind policy);

  std::size_t size() const { return all_.size(); }
  Candidate& operator[](std::size_t place) { return all_[place]; }
  const Candidate& operator[](std::size_t place) const { return all_[place]; }
  const std::vector<Candidate>& all() const { return all_; }

  // Of a strategy, whose plan is made where it is new.
  std::size_t place_of(const Strategy& strategy);

  // Of a plan that fits. Computed once.
  platform::Seconds bound_of(std::size_t place);

 private:
  std::size_t add(Plan plan, bool fits);
  bool add_shares(const OpenKnobs& knobs, Strategy strategy);
  bool add_places(const OpenKnobs& knobs, Strategy strategy);
  void add_mixture(Strategy strategy, std::int64_t finer);
  std::optional<Strategy> add_fitting(Strategy strategy);

  const PlanningInput& input_;
  std::vector<Candidate> all_;
  std::map<std::string, std::size_t> places_;  // by key_of
};

}  // namespace offstage::scheduler
