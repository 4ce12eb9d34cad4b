#pragma once

#include <vector>

#include "scheduler/planner.h"

// How the search gets from one strategy to better ones. Private to planner.h.
namespace offstage::scheduler {

// Strategies one change away from `strategy`, whether they fit or not: the next micro-batch, pack
// or place; other shares; more or fewer slots of a kind, more of all; more or fewer sub-models
// resident or kept; state and weights exchanged.
std::vector<Strategy> neighbours(const PlanningInput& input, const Strategy& strategy);

// What a change makes room for, or takes the room of: `strategy` with as many sub-models keeping
// their activations as then fit, and with as many resident as then fit. Empty when nothing does;
// knobs the user fixed stay.
std::vector<Strategy> refitted(const PlanningInput& input, const Strategy& strategy);

// Cuts between two sizes of packs: as few packs of `coarse` blocks as let the strategy fit, the
// others of `fine`. Empty where no mixture fits.
// Precondition: packs of `coarse` fit with this strategy, packs of `fine` don't.
std::vector<std::int64_t> mixed_cuts(const PlanningInput& input, const Strategy& strategy,
                                     std::int64_t coarse, std::int64_t fine);

}  // namespace offstage::scheduler
