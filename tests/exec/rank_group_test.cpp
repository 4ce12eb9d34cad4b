#include "exec/rank_group.h"

#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/error.h"

namespace offstage::exec::testing {
namespace {

TEST_CASE("ranks that meet get the sum, added from the lowest rank upwards", "[exec]") {
  // In f32, 1e8 + 1 is 1e8: from rank 0 upwards 1e8 - 1e8 + 1 = 1, beginning with another pair 0.
  RankGroup group(3, {});
  constexpr std::int64_t kCount = 2500;  // more than two blocks, in parts of 833, 833 and 834
  const std::vector<float> values{1e8F, -1e8F, 1.0F};
  std::vector<std::vector<float>> arrays;
  for (const float value : values) arrays.emplace_back(kCount, value);
  std::vector<std::vector<float>> largest = arrays;
  for (int run = 0; run < 50; ++run) {
    auto sums = arrays;
    group.run([&](std::int64_t rank) {
      const auto mine = static_cast<std::size_t>(rank);
      group.sum(rank, sums[mine].data(), kCount);
      group.largest(rank, largest[mine].data(), kCount);
    });
    for (std::size_t rank = 0; rank < 3; ++rank) {
      CHECK(sums[rank] == std::vector<float>(kCount, 1.0F));
      CHECK(largest[rank] == std::vector<float>(kCount, 1e8F));
    }
  }
}

TEST_CASE("ranks may sum among some of them", "[exec]") {
  RankGroup group(4, {});
  std::vector<float> values{1.0F, 2.0F, 4.0F, 8.0F};
  group.run([&](std::int64_t rank) {
    group.sum_among(rank, {rank / 2 * 2, 2}, &values[static_cast<std::size_t>(rank)], 1);
  });
  CHECK(values == std::vector<float>{3.0F, 3.0F, 12.0F, 12.0F});
}

TEST_CASE("when a rank fails all end with its error, and the group goes on", "[exec]") {
  RankGroup group(3, {});
  for (const std::int64_t failing : {0, 1, 2}) {
    for (const int meetings : {0, 1, 5}) {
      float numbers[3] = {};
      const auto work = [&](std::int64_t rank) {
        for (int i = 0; i < 10; ++i) {
          if (rank == failing && i == meetings) {
            throw Error(ErrorCode::out_of_memory, "no room");
          }
          group.sum(rank, &numbers[rank], 1);
        }
      };
      CHECK_THROWS_WITH(group.run(work), "no room");
      float ones[3] = {1.0F, 1.0F, 1.0F};
      group.run([&](std::int64_t rank) { group.sum(rank, &ones[rank], 1); });
      CHECK(ones[failing] == 3.0F);
    }
  }
}

TEST_CASE("every thread of a group is prepared once", "[exec]") {
  static thread_local int prepared = 0;
  RankGroup group(3, [] { ++prepared; });
  std::vector<int> seen(3);
  for (int run = 0; run < 2; ++run) {
    group.run([&](std::int64_t rank) { seen[static_cast<std::size_t>(rank)] = prepared; });
  }
  CHECK(seen == std::vector<int>{0, 1, 1});
}

}  // namespace
}  // namespace offstage::exec::testing
