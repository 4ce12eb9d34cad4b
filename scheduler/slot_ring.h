#pragma once

#include <deque>
#include <vector>

#include "scheduler/task_graph.h"

// Hands the slots of one kind to one occupant after the other while a task graph is built, and
// turns every reuse into a dependency: the next occupant's first task waits for the last tasks of
// the previous one.
namespace offstage::scheduler {

class SlotRing {
 public:
  void add(SlotId slot) { free_.push_back({slot, {}}); }
  std::size_t free() const { return free_.size(); }

  // The slot that has been free longest. Appends the tasks to wait for to `predecessors`.
  // Precondition: one is free; the builder's program order releases before it acquires.
  SlotId acquire(std::vector<TaskId>& predecessors);
  // `last`: the tasks after which the slot may be overwritten.
  void release(SlotId slot, std::vector<TaskId> last);

 private:
  struct Free {
    SlotId slot = 0;
    std::vector<TaskId> last;
  };
  std::deque<Free> free_;
};

}  // namespace offstage::scheduler
