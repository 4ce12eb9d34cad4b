#pragma once

#include <string>
#include <vector>

#include "platform/machine.h"

// What many timings of one thing say: the median after outliers are dropped, with how many were
// kept and how far they spread, so that every figure calibration writes tells how good it is.
namespace offstage::calibration {

struct Summary {
  double median = 0.0;
  double spread = 0.0;  // half the range of the middle half, over the median
  int kept = 0, dropped = 0;
};

// Drops what lies further from the median than three scaled median absolute deviations.
// Source: Leys et al., Journal of Experimental Social Psychology 49(4), 2013.
// Precondition: not empty.
Summary summarise(std::vector<double> samples);

// A figure with its name, for people and for the `measurements` of --json.
struct Measurement {
  std::string name;  // "optimizer, one core"
  std::string unit;  // "s/parameter"
  Summary summary;
};

// The origin of a number in a platform or profile file: "calibrate 2026-01-05: median of 12, spread
// 1.3 %".
template <typename T>
platform::Sourced<T> sourced(T value, const std::string& source,
                             platform::Confidence confidence = platform::Confidence::high) {
  return {value, source, confidence};
}
std::string source_of(const Summary& summary, const std::string& date);

}  // namespace offstage::calibration
