#include "exec/parallel.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

using namespace offstage::exec;

TEST_CASE("a loop in parts meets every element once, in whole grains", "[exec][unit]") {
  using Part = std::pair<std::int64_t, std::int64_t>;
  const auto parts_of = [](std::int64_t count, int threads) {
    std::mutex mutex;
    std::vector<Part> parts;
    for_parts(count, 10, threads, [&](std::int64_t begin, std::int64_t end) {
      const std::lock_guard lock(mutex);
      parts.emplace_back(begin, end);
    });
    std::sort(parts.begin(), parts.end());
    return parts;
  };
  // 95 elements are 10 grains; a thread gets 3 of them, or 4 the last.
  CHECK(parts_of(95, 3) == std::vector<Part>{{0, 30}, {30, 60}, {60, 95}});
  CHECK(parts_of(95, 1) == std::vector<Part>{{0, 95}});
  // No thread without a grain.
  CHECK(parts_of(15, 4) == std::vector<Part>{{0, 10}, {10, 15}});
  CHECK(parts_of(3, 4) == std::vector<Part>{{0, 3}});
  CHECK(parts_of(0, 2) == std::vector<Part>{{0, 0}});
}
