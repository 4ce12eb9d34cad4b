#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "scheduler/cost_model.h"
#include "scheduler/metrics.h"
#include "scheduler/planner.h"

// Times of plans for the search, without building the graph of a step with hundreds of
// micro-batches: work on every engine grows by the same amount with each further micro-batch.
// Private to planner.h.
namespace offstage::scheduler {

// Of how many micro-batches on each GPU the graph is that shows what a further one adds.
constexpr std::int64_t kMicroBatchesOfSlope = 2;

// `costs` of the graph of so many, as they were if nothing but the second micro-batch of some GPUs
// was there: what each further one adds.
std::vector<TaskCost> of_second_micro_batch(const TaskGraph& graph, std::vector<TaskCost> costs,
                                            const std::set<std::size_t>& gpus);

// The busiest engine or link and its work in one step; exact, from the graph of two
// micro-batches. A lower bound on the step time, and mostly a close one.
Bound estimated_bound(const Plan& plan, const Profile& profile);

// As `evaluate` says for plans of up to 16 micro-batches, and with uneven shares; for longer steps
// the line through 8 and 16. What is chosen is simulated in full by whoever runs it.
std::vector<platform::Seconds> estimated_steps(const std::vector<const Plan*>& plans,
                                               const Evaluate& evaluate);

// About how many tasks one step of the graphs has that estimated_steps hands to `evaluate`.
std::int64_t estimated_tasks(const Plan& plan);

}  // namespace offstage::scheduler
