#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/policy.h"

// A fixed order, the common part of `planned` and `heft`: every engine gets its tasks in that
// order, up to `submit_ahead` at a time, as soon as their predecessors are submitted.
namespace offstage::scheduler {

class OrderedPolicy final : public Policy {
 public:
  // `order`: every task once, after its predecessors. So the earliest task in flight can always
  // run: no order of completions leads to a standstill.
  OrderedPolicy(const PolicyInput& input, const std::vector<TaskId>& order);

  void start(std::vector<TaskId>& submit) override;
  void step(const Completion& completion, platform::Seconds now,
            std::vector<TaskId>& submit) override;

 private:
  struct Program {
    std::uint32_t next = 0;  // the next task to submit, a place in `places_`
    std::uint32_t end = 0;
    int in_flight = 0;
    bool offered = false;  // the next task has been told that this engine has room for it
  };
  void offer(Program& program, std::vector<TaskId>& submit);
  void lift(TaskId task, std::vector<TaskId>& submit);
  void follow_up(TaskId submitted, std::vector<TaskId>& submit);

  const TaskGraph& graph_;
  int submit_ahead_;
  // What keeps a task from being submitted: predecessors not submitted, engines that have not
  // offered themselves.
  std::vector<std::uint32_t> obstacles_;
  std::vector<TaskId> places_;  // the programs of all engines, one after the other
  std::vector<Program> programs_;
};

}  // namespace offstage::scheduler
