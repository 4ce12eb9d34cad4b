#pragma once

#include "calibration/statistics.h"

// What the executor adds to every task: handing it to an engine's thread and hearing of its end.
namespace offstage::calibration {

// Wall time of one empty task in a chain that changes threads at every link, run by the manager
// over the CPU backend.
Measurement measure_hand_over();

}  // namespace offstage::calibration
