#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "scheduler/task_graph.h"

// Which submitted task may start: the first-in-first-out engines and the dependencies of a backend,
// kept in one place because every backend needs them alike. Not thread-safe.
namespace offstage::scheduler {

class EngineQueues {
 public:
  explicit EngineQueues(const TaskGraph& graph);  // borrows graph

  // Both append the tasks that may start now to `startable`, in submission order.
  void submit(TaskId task, std::vector<TaskId>& startable);
  void complete(TaskId task, std::vector<TaskId>& startable);

  std::size_t in_flight() const { return in_flight_; }  // submitted, not complete
  // The tasks first in line on their engines that have not started, each with what it waits for.
  std::string describe_waiting() const;

 private:
  enum class State : std::uint8_t { unsubmitted, queued, running, complete };
  bool can_start(TaskId task) const;
  void start_heads(TaskId task, std::vector<TaskId>& startable);

  const TaskGraph& graph_;
  std::vector<State> state_;
  std::vector<std::uint32_t> missing_;      // incomplete predecessors
  std::vector<std::deque<TaskId>> queues_;  // by engine, running one in front
  std::size_t in_flight_ = 0;
};

}  // namespace offstage::scheduler
