#pragma once

#include <cstddef>
#include <vector>

#include "calibration/validation.h"

// Does the simulator put systems in the right order? What a user asks it for is a choice, and a
// choice survives errors that two systems share.
namespace offstage::calibration {

// Over the pairs of rows at `indices`; equal measurements are no pair.
Ranking rank_pairs(const std::vector<ReferenceRow>& rows, const std::vector<RowResult>& results,
                   const std::vector<std::size_t>& indices);

}  // namespace offstage::calibration
