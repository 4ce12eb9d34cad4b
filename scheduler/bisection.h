#pragma once

#include <cstdint>
#include <optional>

// Where a condition changes along a range of whole numbers. Private to the planner's searches.
namespace offstage::scheduler {

// The smallest value in [low, high] for which `holds`, once true true for all larger ones.
template <typename Holds>
std::optional<std::int64_t> smallest(std::int64_t low, std::int64_t high, const Holds& holds) {
  if (low > high || !holds(high)) return std::nullopt;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (holds(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// The largest value in [low, high] for which `holds`, once false false for all larger ones.
template <typename Holds>
std::optional<std::int64_t> largest(std::int64_t low, std::int64_t high, const Holds& holds) {
  if (low > high || !holds(low)) return std::nullopt;
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (holds(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace offstage::scheduler
