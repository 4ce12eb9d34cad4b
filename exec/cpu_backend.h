#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "exec/engine_threads.h"
#include "exec/steerable_backend.h"
#include "exec/step_hold.h"
#include "platform/units.h"
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
  // By GPU: its fetches and offloads take at least bytes / throttle, the rest is slept. Empty: as
  // fast as they can.
  std::vector<platform::BytesPerSecond> copy_throttles = {};
  // Called once on each engine's thread before its first task.
  std::function<void()> on_thread_start = {};
};

// Thread: as steerable_backend.h. A task of several engines runs on the thread of its first one
// while the others stand still.
class CpuBackend final : public SteerableBackend {
 public:
  CpuBackend(const scheduler::TaskGraph& graph, TaskBody body, CpuBackendOptions options);
  // Waits for running tasks; those that have not started never do.
  ~CpuBackend() override = default;
  CpuBackend(const CpuBackend&) = delete;
  CpuBackend& operator=(const CpuBackend&) = delete;

  platform::Seconds now() const override;
  void submit(scheduler::TaskId task) override;
  // Errors: as backend.h; whatever a task threw that is no Error becomes Error(device) with the
  // task's name.
  void run(const scheduler::CompletionHandler& handler) override;

  std::vector<EngineActivity> activity() const override;
  void hold() override;
  void release() override;
  void end_at_hold() override;
  bool at_rest() const override;

 private:
  void work(scheduler::TaskId task);
  void execute(scheduler::TaskId task);
  // Both expect mutex_ to be held.
  void dispatch(const std::vector<scheduler::TaskId>& startable);
  void fail(std::exception_ptr failure);
  bool is_over() const;

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
  StepHold hold_;
  bool handling_ = false;  // a completion, which may submit or report a step's end
  std::exception_ptr failure_;
  EngineThreads threads_;  // last: they use all above
};

}  // namespace offstage::exec
