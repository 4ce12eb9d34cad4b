#include "scheduler/step_range.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "platform/error.h"
#include "platform/sourced_reader.h"

namespace offstage::scheduler {
namespace {

// Beyond a factor of ten there is no prediction to speak of.
constexpr double kLeast = 0.1, kMost = 10.0;

}  // namespace

StepRange read_step_range(const platform::Node& node) {
  node.allow_keys({"low", "high", "source", "confidence"});
  StepRange range{.low = node.at("low").number(kLeast, kMost),
                  .high = node.at("high").number(kLeast, kMost),
                  .source = node.at("source").text(),
                  .confidence = platform::read_confidence(node.at("confidence"))};
  if (range.low > range.high) {
    throw node.at("low").error(
        fmt::format("{} is above high, {}; low is the smaller", range.low, range.high));
  }
  return range;
}

std::string step_range_text(const StepRange& range) {
  return fmt::format("step_range:\n  low: {}\n  high: {}\n  source: {}\n  confidence: {}\n",
                     range.low, range.high, nlohmann::json(range.source).dump(),
                     platform::to_string(range.confidence));
}

}  // namespace offstage::scheduler
