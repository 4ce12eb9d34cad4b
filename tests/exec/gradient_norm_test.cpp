#include "exec/gradient_norm.h"

#include <cmath>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

using namespace offstage::exec;

TEST_CASE("a sum of squares is exact where double is", "[exec][unit]") {
  // 1 + 4 + 9 + ... + 100^2 = 100 x 101 x 201 / 6 = 338350, for a length that is no multiple of 8.
  std::vector<float> gradient;
  for (int i = 1; i <= 100; ++i) {
    gradient.push_back(static_cast<float>(i % 2 == 0 ? i : -i));
  }
  CHECK(sum_of_squares(gradient, 1) == 338350.0);
  CHECK(sum_of_squares({}, 1) == 0.0);
  // 3e20 squared is beyond f32 but not beyond double: 9e40, as f32's 3e20 has it.
  const std::vector<float> large{3e20F};
  CHECK(sum_of_squares(large, 1) == Approx(9e40));
}

TEST_CASE("a sum of squares has the same bits on any number of threads", "[exec][unit]") {
  std::mt19937_64 random(5);
  std::normal_distribution<float> normal(0.0F, 1.0F);
  // Three blocks of 65536 and a part of a fourth.
  std::vector<float> gradient(3 * 65536 + 1234);
  for (float& value : gradient) {
    value = normal(random);
  }
  const double alone = sum_of_squares(gradient, 1);
  for (const int threads : {2, 3, 4, 7}) {
    CHECK(sum_of_squares(gradient, threads) == alone);
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
