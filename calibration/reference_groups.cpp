#include "calibration/reference_groups.h"

#include <cstdint>

#include <fmt/format.h>

namespace offstage::calibration {

std::string group_of(const ReferenceRow& row) {
  if (!row.model.layers || !row.model.hidden) return row.model.name;
  return fmt::format("{} x {}", *row.model.layers, *row.model.hidden);
}

int fold_of(const ReferenceRow& row, int folds) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : group_of(row)) {
    hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
  }
  return static_cast<int>(hash % static_cast<std::uint64_t>(folds));
}

}  // namespace offstage::calibration
