#pragma once

#include <string>
#include <vector>

#include "calibration/reference_rows.h"
#include "scheduler/systems/system_strategy.h"

// How it was trained, from a published row: the knobs of the system that stands for it.
namespace offstage::calibration {

// What the row leaves out and is taken from elsewhere is added to `assumed`; the micro-batch of a
// row without one is the whole share of a data-parallel rank, or 1 without a global batch.
// Errors: Refused (reference_workload.h) when no system stands for it.
scheduler::systems::SystemStrategy reference_strategy(const ReferenceRow& row,
                                                      std::vector<std::string>& assumed);

}  // namespace offstage::calibration
