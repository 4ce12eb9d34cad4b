#include "calibration/reference_groups.h"

#include <fmt/format.h>

namespace offstage::calibration {

std::string group_of(const ReferenceRow& row) {
  if (!row.model.layers || !row.model.hidden) return row.model.name;
  return fmt::format("{} x {}", *row.model.layers, *row.model.hidden);
}

}  // namespace offstage::calibration
