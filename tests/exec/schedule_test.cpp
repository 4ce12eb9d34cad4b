#include "exec/schedule.h"

#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

using namespace offstage::exec;
using Kind = offstage::scheduler::LearningRateSchedule::Kind;

namespace {

std::vector<double> rates(const offstage::scheduler::TrainConfig& config, std::int64_t steps) {
  std::vector<double> rates;
  for (std::int64_t step = 1; step <= steps; ++step) {
    rates.push_back(learning_rate_at(config, steps, step));
  }
  return rates;
}

}  // namespace

TEST_CASE("a rate without a schedule is the same in every step", "[exec][unit]") {
  offstage::scheduler::TrainConfig config;
  config.learning_rate = 0.5;
  CHECK(rates(config, 3) == std::vector<double>{0.5, 0.5, 0.5});
}

TEST_CASE("a rate warms up along a line and reaches its height in the last of these steps",
          "[exec][unit]") {
  offstage::scheduler::TrainConfig config;
  config.learning_rate = 1.0;
  config.schedule.warmup_steps = 4;
  CHECK(rates(config, 6) == std::vector<double>{0.25, 0.5, 0.75, 1.0, 1.0, 1.0});
}

TEST_CASE("a rate falls along a line to its last fraction in the last step", "[exec][unit]") {
  offstage::scheduler::TrainConfig config;
  config.learning_rate = 1.0;
  config.schedule = {
      .kind = Kind::linear, .warmup_steps = 2, .final_fraction = 0.5, .steps = std::nullopt};
  // Two steps from 1 in step 2 to 0.5 in step 4.
  CHECK(rates(config, 4) == std::vector<double>{0.5, 1.0, 0.75, 0.5});
  // A schedule of 3 steps in a training of 5: the last fraction stays.
  config.schedule.steps = 3;
  CHECK(rates(config, 5) == std::vector<double>{0.5, 1.0, 0.5, 0.5, 0.5});
  // Nothing left to fall along.
  config.schedule.steps = 1;
  CHECK(rates(config, 4) == std::vector<double>{0.5, 1.0, 0.5, 0.5});
}

TEST_CASE("a rate falls along half a cosine", "[exec][unit]") {
  offstage::scheduler::TrainConfig config;
  config.learning_rate = 2.0;
  config.schedule = {
      .kind = Kind::cosine, .warmup_steps = 0, .final_fraction = 0.1, .steps = std::nullopt};
  // cos 45, 90, 135 and 180 degrees: sqrt(1/2), 0, -sqrt(1/2), -1; half of 1 + that is left above
  // the last tenth.
  const double root = std::sqrt(0.5);
  const auto found = rates(config, 4);
  CHECK(found[0] == Approx(2.0 * (0.1 + 0.9 * 0.5 * (1.0 + root))));
  CHECK(found[1] == Approx(2.0 * (0.1 + 0.9 * 0.5)));
  CHECK(found[2] == Approx(2.0 * (0.1 + 0.9 * 0.5 * (1.0 - root))));
  CHECK(found[3] == Approx(2.0 * 0.1));
}
