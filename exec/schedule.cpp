#include "exec/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace offstage::exec {

using Kind = scheduler::LearningRateSchedule::Kind;

double learning_rate_at(const scheduler::TrainConfig& config, std::int64_t total_steps,
                        std::int64_t step) {
  const scheduler::LearningRateSchedule& schedule = config.schedule;
  const std::int64_t warmup = schedule.warmup_steps;
  if (step < warmup) {
    return config.learning_rate * static_cast<double>(step) / static_cast<double>(warmup);
  }
  if (schedule.kind == Kind::constant) {
    return config.learning_rate;
  }
  // A warm-up as long as the whole schedule leaves nothing to fall along: the fall is then over
  // with the step after it.
  const std::int64_t falling =
      std::max<std::int64_t>(1, schedule.steps.value_or(total_steps) - warmup);
  const double done =
      std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(falling));
  const double left =
      schedule.kind == Kind::linear ? 1.0 - done : 0.5 * (1.0 + std::cos(std::numbers::pi * done));
  return config.learning_rate * (schedule.final_fraction + (1.0 - schedule.final_fraction) * left);
}

}  // namespace offstage::exec
