#pragma once

// Note [The pace of a computer]
// Virtual computers have neighbours, and all have clocks that rise and fall with heat and load: the
// same product takes a tenth longer now than a second ago. What is measured at different moments
// is compared at one pace: a fixed product is timed beside every group of measurements, and times
// of arithmetic are taken as if all had been measured at the median pace.
namespace offstage::calibration {

// FLOP/s of the fixed product, on this thread, now. A hundredth of a second.
double measure_pace();

}  // namespace offstage::calibration
