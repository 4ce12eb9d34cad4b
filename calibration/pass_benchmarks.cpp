#include "calibration/pass_benchmarks.h"

#include <array>
#include <cstddef>
#include <utility>

#include "calibration/timing.h"
#include "exec/planes.h"
#include "exec/rank_group.h"

namespace offstage::calibration {

using platform::Bytes;
using platform::Seconds;

namespace {

// A sub-model's weights: larger than the caches of one core, as they are when they have just been
// fetched.
constexpr std::int64_t kElements = 1 << 20;
constexpr Effort kPassEffort{.least = 10, .budget = {0.1}};

template <typename Pass>
Measurement time_elements(const char* name, const Pass& pass) {
  std::vector<double> samples = time_calls(pass, kPassEffort);
  for (double& seconds : samples) seconds /= static_cast<double>(kElements);
  return {name, "s/element", summarise(std::move(samples))};
}

// From a few rows to the boundary activation of a large micro-batch.
constexpr std::array<std::int64_t, 5> kSums{4096, 16384, 65536, 262144, 1048576};
constexpr int kSumsInARow = 20;
constexpr int kRounds = 5;

}  // namespace

Measurement measure_widening() {
  const std::vector<std::uint16_t> from(kElements);
  std::vector<float> to(kElements);
  return time_elements("widening, one core",
                       [&] { exec::widen(from.data(), kElements, to.data()); });
}

Measurement measure_narrowing() {
  const std::vector<float> from(kElements);
  std::vector<std::uint16_t> to(kElements);
  return time_elements("rounding, one core",
                       [&] { exec::narrow(from.data(), kElements, to.data()); });
}

platform::CollectiveCurve measure_sums(int ranks, const std::string& source) {
  platform::CollectiveCurve curve{platform::CollectiveKind::all_reduce,
                                  {{}, source, platform::Confidence::high}};
  exec::RankGroup group(ranks, {});
  for (const std::int64_t count : kSums) {
    std::vector<std::vector<float>> arrays(static_cast<std::size_t>(ranks),
                                           std::vector<float>(static_cast<std::size_t>(count)));
    const auto sums_in_a_row = [&](std::int64_t rank) {
      for (int i = 0; i < kSumsInARow; ++i) {
        group.sum(rank, arrays[static_cast<std::size_t>(rank)].data(), count);
      }
    };
    group.run(sums_in_a_row);
    std::vector<double> samples;
    for (int round = 0; round < kRounds; ++round) {
      const Seconds begin = wall_time();
      group.run(sums_in_a_row);
      samples.push_back((wall_time() - begin).value / kSumsInARow);
    }
    curve.points.value.emplace_back(Bytes{count * static_cast<std::int64_t>(sizeof(float))},
                                    Seconds{summarise(std::move(samples)).median});
  }
  return curve;
}

}  // namespace offstage::calibration
