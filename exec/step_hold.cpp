#include "exec/step_hold.h"

#include <algorithm>
#include <utility>

namespace offstage::exec {

using scheduler::TaskId;

StepHold::StepHold(const scheduler::TaskGraph& graph) : graph_(graph), left_in_step_(graph.steps) {
  for (const scheduler::Task& task : graph.tasks) {
    ++left_in_step_[task.step];
  }
}

bool StepHold::admit(TaskId task) {
  const std::uint32_t step = graph_.tasks[task].step;
  if (holding_ && (!latest_step_ || step > *latest_step_)) {
    held_.push_back(task);
    return false;
  }
  latest_step_ = std::max(latest_step_.value_or(0), step);
  return true;
}

void StepHold::complete(TaskId task) { --left_in_step_[graph_.tasks[task].step]; }

void StepHold::end() {
  holding_ = true;
  ending_ = true;
}

std::vector<TaskId> StepHold::release() {
  if (ending_) {
    return {};
  }
  holding_ = false;
  return std::exchange(held_, {});
}

std::vector<TaskId> StepHold::let_steps_end() {
  if (!latest_step_ || held_.empty()) {
    return {};
  }
  const auto behind = left_in_step_.begin() + *latest_step_ + 1;
  if (std::all_of(left_in_step_.begin(), behind, [](std::uint32_t left) { return left == 0; })) {
    return {};
  }
  const auto next =
      std::ranges::min_element(held_, {}, [this](TaskId task) { return graph_.tasks[task].step; });
  latest_step_ = graph_.tasks[*next].step;
  return std::exchange(held_, {});
}

bool StepHold::holds(TaskId task) const { return std::ranges::find(held_, task) != held_.end(); }

}  // namespace offstage::exec
