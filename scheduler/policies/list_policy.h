#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/policy.h"

// List scheduling, the common part of most policies: ready tasks are submitted, the best of them
// first on each engine that has room.
namespace offstage::scheduler {

// When a task is ready. complete: all its predecessors are. queued: they are, or stand before it in
// the line of an engine that it needs too, and so will be by its turn. Else a task that could go
// on where its engine is would come after whatever else is ready now.
enum class Readiness { complete, queued };

class ListPolicy final : public Policy {
 public:
  // `order`: by TaskId, the smallest goes first; all distinct. Empty: the order in which tasks
  // become ready, by id among those that one completion makes ready.
  ListPolicy(const PolicyInput& input, std::vector<std::uint32_t> order,
             Readiness readiness = Readiness::complete);

  void start(std::vector<TaskId>& submit) override;
  void step(const Completion& completion, platform::Seconds now,
            std::vector<TaskId>& submit) override;

 private:
  struct Ready {
    std::uint32_t order;
    TaskId task;
    // The standard heaps keep the largest in front.
    friend bool operator<(const Ready& a, const Ready& b) { return a.order > b.order; }
  };
  using Heap = std::vector<Ready>;

  bool has_room(EngineId engine) const { return in_flight_[engine] < submit_ahead_; }
  // Whether `task`'s turn on some engine can only come when `predecessor` is complete.
  bool follows(TaskId task, TaskId predecessor) const;
  void lift(TaskId task);
  void add_ready(TaskId task);
  void push(EngineId engine, Ready ready);
  void fill(EngineId engine, std::vector<TaskId>& submit);

  const TaskGraph& graph_;
  std::vector<std::uint32_t> order_;
  Readiness readiness_;
  int submit_ahead_;
  std::uint32_t became_ready_ = 0;
  std::vector<std::uint32_t> missing_;  // predecessors that keep a task from being ready, by TaskId
  std::vector<int> in_flight_;          // by engine
  // By engine. A ready task lies in one heap only; between two steps it is that of an engine
  // without room, so the next completion there looks at it again and none is forgotten.
  std::vector<Heap> heaps_;
};

}  // namespace offstage::scheduler
