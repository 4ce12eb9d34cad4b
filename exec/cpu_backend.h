#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "platform/units.h"
#include "scheduler/backend.h"
#include "scheduler/engine_queues.h"
#include "scheduler/task_graph.h"

// Carries out a task graph on CPU threads, one for each engine: virtual GPUs compute, copy and
// reduce beside each other as real ones would. What a task does is the caller's (TaskRunner); this
// class only decides when and on which thread.
//
//   CpuBackend backend(graph, [&](TaskId task) { runner.run(task); }, {});
//   scheduler::Manager(graph, backend, policy).run();   // see tests/exec/cpu_backend_test.cpp
namespace offstage::exec {

using TaskBody = std::function<void(scheduler::TaskId)>;

struct CpuBackendOptions {
  // Fetches and offloads take at least bytes / copy_throttle: the rest is slept.
  std::optional<platform::BytesPerSecond> copy_throttle = {};
  // Called once on each engine's thread before its first task.
  std::function<void()> on_thread_start = {};
};

// What an engine is at.
struct EngineActivity {
  std::string engine;
  std::string task;       // running, or the first in line; empty when there is none
  std::string waits_for;  // why the first in line does not run; empty when it does
  std::optional<platform::Seconds> running_for;
  std::size_t in_line = 0;  // tasks, with this one
};

// Thrown by CpuBackend::run after end_at_hold: what was left to run never will be.
struct EndedOnRequest {};

// Note [Holding a run]
// A run is brought to rest at the end of a step. Tasks of steps that have begun go on to their
// end; those of later steps are held back, also when they could start. Then nothing runs, no slot
// is in use, and the state is that of the last step's end. (A policy may have put a task of a later
// step in line before one of an earlier step: then that later step ends, too.) Held tasks start
// with release(), or never after end_at_hold().
//
// Thread: submit() and run() from one thread; activity(), hold(), release(), end_at_hold() and
// at_rest() from any. A task of several engines runs on the thread of its
// first one while the others stand still.
class CpuBackend final : public scheduler::Backend {
 public:
  CpuBackend(const scheduler::TaskGraph& graph, TaskBody body, CpuBackendOptions options);
  // Waits for running tasks; those that have not started never do.
  ~CpuBackend() override;
  CpuBackend(const CpuBackend&) = delete;
  CpuBackend& operator=(const CpuBackend&) = delete;

  platform::Seconds now() const override;
  void submit(scheduler::TaskId task) override;
  // Errors: as backend.h; whatever a task threw that is no Error becomes Error(device) with the
  // task's name.
  // EndedOnRequest after end_at_hold().
  void run(const scheduler::CompletionHandler& handler) override;

  std::vector<EngineActivity> activity() const;  // by engine
  void hold();
  void release();
  void end_at_hold();
  bool at_rest() const;  // held, and nothing runs
  // The latest step of which a task has begun; none before the first task.
  std::optional<std::uint32_t> latest_step() const;

 private:
  // What an engine's thread waits for: its next task, or the end.
  struct Worker {
    std::optional<scheduler::TaskId> next;
    std::condition_variable wake;
    std::jthread thread;
  };

  void work(Worker& worker);
  void execute(scheduler::TaskId task);
  // Both expect mutex_ to be held.
  void dispatch(const std::vector<scheduler::TaskId>& startable);
  void fail(std::exception_ptr failure);
  bool is_over() const;
  void let_step_end();

  const scheduler::TaskGraph& graph_;
  const TaskBody body_;
  const CpuBackendOptions options_;
  const std::chrono::steady_clock::time_point origin_ = std::chrono::steady_clock::now();

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable progress_;
  scheduler::EngineQueues queues_;
  std::deque<scheduler::Completion> completions_;
  std::vector<scheduler::TaskId> startable_;
  std::size_t running_ = 0;
  std::vector<std::optional<platform::Seconds>> started_;  // of the task running, by engine
  std::optional<std::uint32_t> latest_step_;
  std::vector<std::uint32_t> left_in_step_;  // tasks not complete
  bool holding_ = false;
  bool ending_ = false;
  std::vector<scheduler::TaskId> held_;
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::deque<Worker> workers_;  // by engine; a deque because a Worker can't move
};

}  // namespace offstage::exec
