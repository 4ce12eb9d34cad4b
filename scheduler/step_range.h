#pragma once

#include <string>

#include "platform/document.h"
#include "platform/machine.h"

// How far predictions with a profile have been from measurements: the section `step_range` of a
// profile. A figure without it would promise more than is known.
//
//   step_range: {low: 0.9, high: 1.15, source: "...", confidence: medium}
namespace offstage::scheduler {

// Nine of ten measured steps lay between `low` and `high` times the predicted one.
struct StepRange {
  double low = 1.0, high = 1.0;  // low <= 1 <= high need not hold: predictions may be biased
  std::string source;
  platform::Confidence confidence = platform::Confidence::assumed;
};

// Errors: Error(bad_input) with place.
StepRange read_step_range(const platform::Node& node);
// The section as YAML, so that read_step_range finds the same again.
std::string step_range_text(const StepRange& range);

}  // namespace offstage::scheduler
