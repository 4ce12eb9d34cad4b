#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "scheduler/task_graph.h"

// One thread for each engine of a task graph, each with at most one task at a time. Which task may
// begin is the business of a backend, which hands it out.
namespace offstage::exec {

class EngineThreads {
 public:
  // `work` is called on an engine's thread for every task handed to it; it may hand out others and
  // may not throw. on_start, where there is one: once on each thread, before its first task.
  EngineThreads(std::size_t engines, std::function<void()> on_start,
                std::function<void(scheduler::TaskId)> work);
  // Waits for the tasks handed out before; later ones are dropped.
  ~EngineThreads();
  EngineThreads(const EngineThreads&) = delete;
  EngineThreads& operator=(const EngineThreads&) = delete;

  // Precondition: the engine's thread has no task, or is about to return from its last one.
  // Thread: any.
  void hand(scheduler::EngineId engine, scheduler::TaskId task);

 private:
  struct Worker {
    std::optional<scheduler::TaskId> next;
    std::condition_variable wake;
    std::jthread thread;
  };
  void run(Worker& worker);

  const std::function<void()> on_start_;
  const std::function<void(scheduler::TaskId)> work_;
  std::mutex mutex_;  // guards next of all workers, and stopping_
  bool stopping_ = false;
  std::deque<Worker> workers_;  // by engine; a deque because a Worker can't move
};

}  // namespace offstage::exec
