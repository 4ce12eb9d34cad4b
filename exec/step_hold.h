#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/task_graph.h"

// Which steps of a task graph have begun, and which tasks are held back: what backends share of
// steerable_backend.h, Note [Holding a run]. Not thread-safe.
//
//   if (hold.admit(task)) begin(task);                    // see tests/exec/step_hold_test.cpp
//   for (TaskId task : hold.release()) if (hold.admit(task)) begin(task);
namespace offstage::exec {

class StepHold {
 public:
  explicit StepHold(const scheduler::TaskGraph& graph);  // borrows graph

  // Whether a task that could start may: its step has then begun. Otherwise it is held back.
  bool admit(scheduler::TaskId task);
  // Once for every task admitted.
  void complete(scheduler::TaskId task);

  void hold() { holding_ = true; }
  void end();  // a hold that is never released
  // Both return tasks held so far, to be asked for again.
  // No effect after end().
  std::vector<scheduler::TaskId> release();
  // When nothing is under way: lets one more step begin where those that have begun can't end
  // without it.
  std::vector<scheduler::TaskId> let_steps_end();

  bool holding() const { return holding_; }
  bool ending() const { return ending_; }
  bool holds_any() const { return !held_.empty(); }
  bool holds(scheduler::TaskId task) const;
  // The latest step that has begun; none before the first task.
  std::optional<std::uint32_t> latest_step() const { return latest_step_; }

 private:
  const scheduler::TaskGraph& graph_;
  std::optional<std::uint32_t> latest_step_;
  std::vector<std::uint32_t> left_in_step_;  // tasks not complete
  std::vector<scheduler::TaskId> held_;
  bool holding_ = false;
  bool ending_ = false;
};

}  // namespace offstage::exec
