#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/task_graph.h"

// Which submitted task may start: the first-in-first-out engines and the dependencies of a backend,
// kept in one place because every backend needs them alike. Not thread-safe. After construction it
// allocates nothing; a task costs as much as it has engines and successors.
namespace offstage::scheduler {

class EngineQueues {
 public:
  explicit EngineQueues(const TaskGraph& graph);  // borrows graph

  // Both append the tasks that may start now to `startable`, in submission order.
  void submit(TaskId task, std::vector<TaskId>& startable);
  void complete(TaskId task, std::vector<TaskId>& startable);

  std::size_t in_flight() const { return in_flight_; }  // submitted, not complete
  // The task first in line on an engine, running or not.
  std::optional<TaskId> front(EngineId engine) const;
  std::size_t in_line(EngineId engine) const;  // with the one in front
  // "forward submodel 3 ... waits for all_gather submodel 3 ...". Precondition: submitted.
  std::string describe_wait(TaskId task) const;
  // The tasks first in line on their engines that have not started, each with what it waits for.
  std::string describe_waiting() const;

 private:
  enum class State : std::uint8_t { unsubmitted, queued, running, complete };
  // The tasks submitted to one engine, as a part of `places_`.
  struct Queue {
    std::uint32_t head = 0;  // the task in front
    std::uint32_t tail = 0;  // where the next one goes
  };
  void lift(TaskId task, std::vector<TaskId>& startable);

  const TaskGraph& graph_;
  std::vector<State> state_;
  // What a task still waits for: one for each incomplete predecessor, one for each of its engines
  // where it is not in front, one for its submission.
  std::vector<std::uint32_t> obstacles_;
  std::vector<std::uint32_t> sequence_;  // place in the order of submission
  std::vector<TaskId> places_;           // of all engines, one after the other
  std::vector<Queue> queues_;            // by engine
  std::size_t in_flight_ = 0;
  std::uint32_t submitted_ = 0;
};

}  // namespace offstage::scheduler
