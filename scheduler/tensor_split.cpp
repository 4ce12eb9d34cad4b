#include "scheduler/tensor_split.h"

#include <algorithm>

#include <fmt/format.h>

namespace offstage::scheduler {

std::optional<std::string> split_obstacle(const platform::Machine& machine, std::int64_t ways) {
  const auto gpus = static_cast<std::int64_t>(machine.gpus.size());
  if (gpus % ways != 0) {
    return fmt::format("tensor_ways {} does not divide the {} GPUs", ways, gpus);
  }
  if (ways == 1) return std::nullopt;
  if (std::ranges::none_of(machine.collectives, [](const platform::CollectiveCurve& curve) {
        return curve.kind == platform::CollectiveKind::all_reduce;
      })) {
    return fmt::format("tensor_ways {}: platform {} lists no times of all_reduce under collectives",
                       ways, machine.name);
  }
  return std::nullopt;
}

}  // namespace offstage::scheduler
