#include "calibration/drive_benchmark.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "calibration/timing.h"
#include "exec/arena.h"
#include "exec/scratch_file.h"
#include "platform/error.h"

namespace offstage::calibration {

using platform::Bytes;
using platform::BytesPerSecond;
using platform::Confidence;
using platform::Seconds;

namespace {

// State of sub-models from a hundred thousand to some million parameters.
constexpr std::array<Bytes, 3> kSizes{platform::mebibytes(1), platform::mebibytes(4),
                                      platform::mebibytes(16)};
constexpr int kRounds = 9;

struct Line {
  double latency = 0.0, per_byte = 0.0;
};

// Through the smallest and the largest size.
Line line_through(const std::array<Summary, kSizes.size()>& times) {
  const double bytes = static_cast<double>((kSizes.back() - kSizes.front()).value);
  const double per_byte = (times.back().median - times.front().median) / bytes;
  return {times.front().median - per_byte * static_cast<double>(kSizes.front().value), per_byte};
}

BytesPerSecond rate_beyond(Seconds latency, const Summary& largest) {
  const double left = std::max(largest.median - latency.value, 0.1 * largest.median);
  return {static_cast<double>(kSizes.back().value) / left};
}

}  // namespace

DriveMeasurement measure_drive(const std::string& directory, const std::string& date) {
  exec::ScratchFile file(directory, "offstage-calibrate", kSizes);
  // Memory as the executor's slots have it: whole pages.
  exec::Arena arena("calibration of a drive", kSizes.back(), exec::system_memory());
  const exec::Buffer memory(arena, "transfers", kSizes.back());
  std::memset(memory.data(), 1, static_cast<std::size_t>(kSizes.back().value));
  std::array<Summary, kSizes.size()> reads, writes;
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    std::vector<double> read, written;
    for (int round = 0; round < kRounds; ++round) {
      const Seconds begin = wall_time();
      file.write(i, memory.data());
      const Seconds middle = wall_time();
      file.read(i, memory.data());
      written.push_back((middle - begin).value);
      read.push_back((wall_time() - middle).value);
    }
    reads[i] = summarise(std::move(read));
    writes[i] = summarise(std::move(written));
  }
  const Seconds latency{
      std::max(1e-6, (line_through(reads).latency + line_through(writes).latency) / 2.0)};
  DriveMeasurement result;
  const auto measured = [&](const char* name, const Summary& largest) {
    Summary summary = largest;
    summary.median = rate_beyond(latency, largest).value;
    return Measurement{name, "B/s", summary};
  };
  result.read = measured("drive, reading", reads.back());
  result.write = measured("drive, writing", writes.back());
  std::error_code ignored;
  const auto space = std::filesystem::space(directory, ignored);
  // A file system that does not say is one that can't be full.
  const auto free =
      ignored ? platform::gibibytes(1024) : Bytes{static_cast<std::int64_t>(space.available)};
  result.drive = {
      .capacity = {free, fmt::format("calibrate {}: free in {}", date, directory),
                   Confidence::medium},
      .read =
          sourced(BytesPerSecond{result.read.summary.median}, source_of(result.read.summary, date)),
      .write = sourced(BytesPerSecond{result.write.summary.median},
                       source_of(result.write.summary, date)),
      .latency = sourced(latency, fmt::format("calibrate {}: of transfers of {} to {} bytes", date,
                                              kSizes.front().value, kSizes.back().value))};
  return result;
}

}  // namespace offstage::calibration
