#pragma once

#include <cstdint>
#include <vector>

#include "calibration/statistics.h"
#include "platform/machine.h"

// Passes over memory that small trainings (probe.h) do not show by themselves: widening and
// rounding, which are a part of compute tasks, and sums among the ranks of a tensor split.
namespace offstage::calibration {

// Seconds of an element on one core.
Measurement measure_widening();
Measurement measure_narrowing();

// The wall time of a sum among `ranks` ranks by the bytes of one's array: each rank on a thread of
// its own, as the executor has it.
platform::CollectiveCurve measure_sums(int ranks, const std::string& source);

}  // namespace offstage::calibration
