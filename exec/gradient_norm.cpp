#include "exec/gradient_norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "exec/bf16.h"

namespace offstage::exec {
namespace {

constexpr std::int64_t kBlock = 65536;
constexpr std::size_t kSums = 8;

double value_of(float value) { return value; }
double value_of(std::uint16_t value) { return from_bf16(value); }

template <typename Gradient>
double block_squares(const Gradient* gradient, std::int64_t count) {
  std::array<double, kSums> sums{};
  const std::int64_t whole = count - count % static_cast<std::int64_t>(kSums);
  for (std::int64_t i = 0; i < whole; i += kSums) {
    for (std::size_t lane = 0; lane < kSums; ++lane) {
      const double value = value_of(gradient[i + static_cast<std::int64_t>(lane)]);
      sums[lane] += value * value;
    }
  }
  for (std::int64_t i = whole; i < count; ++i) {
    const double value = value_of(gradient[i]);
    sums[static_cast<std::size_t>(i - whole)] += value * value;
  }
  double sum = 0.0;
  for (const double part : sums) {
    sum += part;
  }
  return sum;
}

double in_order(std::span<const double> parts) {
  double sum = 0.0;
  for (const double part : parts) {
    sum += part;
  }
  return sum;
}

template <typename Gradient>
double blocks_squares(std::span<const Gradient> gradient, Workers& workers) {
  const auto count = static_cast<std::int64_t>(gradient.size());
  std::vector<double> blocks(static_cast<std::size_t>((count + kBlock - 1) / kBlock));
  workers.for_parts(count, kBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; at += kBlock) {
      blocks[static_cast<std::size_t>(at / kBlock)] =
          block_squares(gradient.data() + at, std::min(kBlock, end - at));
    }
  });
  return in_order(blocks);
}

}  // namespace

double sum_of_squares(std::span<const float> gradient, Workers& workers) {
  return blocks_squares(gradient, workers);
}

double sum_of_squares(std::span<const std::uint16_t> gradient, Workers& workers) {
  return blocks_squares(gradient, workers);
}

float clip_scale(std::span<const double> squares, double most) {
  const double norm = std::sqrt(in_order(squares));
  return norm > most ? static_cast<float>(most / norm) : 1.0F;
}

}  // namespace offstage::exec
