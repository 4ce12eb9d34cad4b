#include "exec/parallel.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

using namespace offstage::exec;

namespace {

using Part = std::pair<std::int64_t, std::int64_t>;

std::vector<Part> parts_of(Workers& workers, std::int64_t count) {
  std::mutex mutex;
  std::vector<Part> parts;
  workers.for_parts(count, 10, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    parts.emplace_back(begin, end);
  });
  std::sort(parts.begin(), parts.end());
  return parts;
}

}  // namespace

TEST_CASE("a loop in parts meets every element once, grain by grain", "[exec][unit]") {
  Workers three(3);
  for (int again = 0; again < 100; ++again) {
    CHECK(parts_of(three, 25) == std::vector<Part>{{0, 10}, {10, 20}, {20, 25}});
    CHECK(parts_of(three, 3) == std::vector<Part>{{0, 3}});
    CHECK(parts_of(three, 0) == std::vector<Part>{{0, 0}});
  }
  Workers one(1);
  CHECK(parts_of(one, 95) == std::vector<Part>{{0, 95}});
}

TEST_CASE("loops of several threads come one after the other and are all done", "[exec][unit]") {
  Workers workers(2);
  std::vector<std::int64_t> sums(4);
  {
    std::vector<std::jthread> callers;
    for (std::int64_t& sum : sums) {
      callers.emplace_back([&workers, &sum] {
        for (int again = 0; again < 50; ++again) {
          for (const auto& [begin, end] : parts_of(workers, 95)) sum += end - begin;
        }
      });
    }
  }
  CHECK(sums == std::vector<std::int64_t>(4, 50 * 95));
}
