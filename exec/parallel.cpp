#include "exec/parallel.h"

#include <algorithm>
#include <thread>
#include <vector>

namespace offstage::exec {

void for_parts(std::int64_t count, std::int64_t grain, int threads,
               const std::function<void(std::int64_t, std::int64_t)>& body) {
  const std::int64_t grains = (count + grain - 1) / grain;
  const std::int64_t parts =
      std::clamp<std::int64_t>(threads, 1, std::max<std::int64_t>(1, grains));
  // As even as whole grains can be.
  const auto bound = [&](std::int64_t part) {
    return std::min(count, grains * part / parts * grain);
  };
  std::vector<std::jthread> others;
  for (std::int64_t part = 1; part < parts; ++part) {
    others.emplace_back([&body, begin = bound(part), end = bound(part + 1)] { body(begin, end); });
  }
  body(0, bound(1));
}

}  // namespace offstage::exec
