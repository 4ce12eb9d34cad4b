#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/planner.h"

// How many micro-batches of a step each GPU runs: equally many where all are alike and the batch
// allows it; else so that they end together as nearly as whole micro-batches let them. This is how
// parallel tasks move from a slow GPU to a free one: once, in the plan, so that whoever carries it
// out adds the same numbers in the same order. Private to planner.h.
namespace offstage::scheduler {

// Whether the request leaves shares open or lists them; not with hosts or a tensor split, whose
// shares are even.
bool shares_may_differ(const PlanningInput& input, std::int64_t ways);

// Whether every GPU has the same model, speed and way to its socket's memory.
bool gpus_alike(const platform::Machine& machine);

// Micro-batches dealt out one by one: the first GPUs have one more than the others where they don't
// come out even, none are listed where they do.
std::vector<std::int64_t> nearly_even(std::int64_t micro_batches, std::int64_t gpus);

// Strategy::shares for the strategy's cuts, places and micro-batch: those the request fixes; the
// nearly even ones for GPUs that are alike; else each next micro-batch to the GPU whose busiest
// engine or link then has least to do.
// Precondition: the micro-batch is one of open_micro_batches.
std::vector<std::int64_t> best_shares(const PlanningInput& input, const Strategy& strategy);

// The same without regard to pace: those the request fixes, or nearly even ones.
std::vector<std::int64_t> plain_shares(const PlanningInput& input, const Strategy& strategy);

// Shares near the strategy's: nearly even ones, the best ones, and one micro-batch moved from the
// GPU that ends last to those that would end first with it. Empty where shares are not open.
std::vector<std::vector<std::int64_t>> share_moves(const PlanningInput& input,
                                                   const Strategy& strategy);

}  // namespace offstage::scheduler
