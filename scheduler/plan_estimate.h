#pragma once

#include <vector>

#include "scheduler/metrics.h"
#include "scheduler/planner.h"

// Times of plans for the search, without building the graph of a step with hundreds of
// micro-batches: work on every engine grows by the same amount with each further micro-batch.
// Private to planner.h.
namespace offstage::scheduler {

// The busiest engine or link and its work in one step; exact, from the graph of two
// micro-batches. A lower bound on the step time, and mostly a close one.
Bound estimated_bound(const Plan& plan, const Profile& profile);

// As `evaluate` says for plans of up to 24 micro-batches; for longer steps the line through 12 and
// 24. What is chosen is simulated in full by whoever runs it.
std::vector<platform::Seconds> estimated_steps(const std::vector<const Plan*>& plans,
                                               const Evaluate& evaluate);

}  // namespace offstage::scheduler
