#include "exec/gradient_norm.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include <catch2/catch.hpp>

using namespace offstage::exec;

TEST_CASE("a sum of squares is exact where double is", "[exec][unit]") {
  // 1 + 4 + 9 + ... + 100^2 = 100 x 101 x 201 / 6 = 338350, for a length that is no multiple of 8.
  std::vector<float> gradient;
  for (int i = 1; i <= 100; ++i) {
    gradient.push_back(static_cast<float>(i % 2 == 0 ? i : -i));
  }
  Workers one(1);
  CHECK(sum_of_squares(gradient, one) == 338350.0);
  CHECK(sum_of_squares(std::span<const float>{}, one) == 0.0);
  // 3e20 squared is beyond f32 but not beyond double: 9e40, as f32's 3e20 has it.
  const std::vector<float> large{3e20F};
  CHECK(sum_of_squares(large, one) == Approx(9e40));
}

TEST_CASE("a sum of squares of bf16 gradients is that of the same numbers in f32", "[exec][unit]") {
  // 0x3F80 and on are 1, 1 + 1/128, ...: two blocks of 65536 and a part of a third.
  std::vector<std::uint16_t> gradient;
  std::vector<float> same;
  for (int i = 0; i < 2 * 65536 + 77; ++i) {
    gradient.push_back(static_cast<std::uint16_t>(0x3F80 + i % 300));
    same.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(gradient.back()) << 16U));
  }
  Workers two(2);
  CHECK(sum_of_squares(gradient, two) == sum_of_squares(same, two));
}

TEST_CASE("a sum of squares has the same bits on any number of threads", "[exec][unit]") {
  std::mt19937_64 random(5);
  std::normal_distribution<float> normal(0.0F, 1.0F);
  // Three blocks of 65536 and a part of a fourth.
  std::vector<float> gradient(3 * 65536 + 1234);
  for (float& value : gradient) {
    value = normal(random);
  }
  Workers one(1);
  const double alone = sum_of_squares(gradient, one);
  for (const int threads : {2, 3, 4, 7}) {
    Workers workers(threads);
    CHECK(sum_of_squares(gradient, workers) == alone);
  }
  // Each of the n squares of a normal number has mean 1 and variance 2.
  const auto n = static_cast<double>(gradient.size());
  CHECK(std::abs(alone - n) < 6.0 * std::sqrt(2.0 * n));
}

TEST_CASE("gradients above the norm are scaled onto it, others left alone", "[exec][unit]") {
  // Shards of 9 and 16: norm 5.
  const std::vector<double> squares{9.0, 16.0};
  CHECK(clip_scale(squares, 5.0) == 1.0F);
  CHECK(clip_scale(squares, 10.0) == 1.0F);
  CHECK(clip_scale(squares, 1.0) == 0.2F);
  CHECK(clip_scale({}, 1.0) == 1.0F);
}
