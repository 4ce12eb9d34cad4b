#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "exec/device_layer.h"
#include "exec/engine_threads.h"
#include "exec/steerable_backend.h"
#include "exec/step_hold.h"
#include "platform/units.h"
#include "scheduler/engine_queues.h"
#include "scheduler/task_graph.h"

// Carries out a task graph on GPUs. A task of a GPU's engine is given to the engine's stream as
// soon as it is submitted and everything it waits for is on its way: the stream waits for those by
// events, so that the GPU goes from task to task without asking the CPU. How far ahead it is fed is
// the policy's business (submit_ahead). Tasks of CPU engines (optimizer, NVMe) run on threads once
// what they wait for is done.
//
//   StreamBackend backend(graph, streams, {.enqueue = ..., .run = ...});
//   scheduler::Manager(graph, backend, policy).run();  // see tests/exec/stream_backend_test.cpp
namespace offstage::exec {

struct StreamBodies {
  // Gives a GPU's task to the streams of its engines (in the order of TaskGraph::task_engines).
  // Of several streams each goes on only when all have done what they were given here.
  std::function<void(scheduler::TaskId, std::span<const StreamId>)> enqueue;
  // Carries out a CPU's task.
  std::function<void(scheduler::TaskId)> run;
  // Called once on each engine's thread before its first task.
  std::function<void()> on_thread_start = {};
};

// Note [Launching takes time too]
// Handing a sub-model's kernels to a GPU takes a CPU about 5 us each, a millisecond and more in
// all. So every engine has a thread that does it, and submit() returns at once. A thread begins
// with a task when it is first on all its engines, all its predecessors on GPUs have been launched
// and all those on CPUs are done.

// Precondition: a task's engines are all of GPUs or all of CPUs.
// Thread: as steerable_backend.h.
class StreamBackend final : public SteerableBackend {
 public:
  // Owner: graph and streams outlive the backend.
  StreamBackend(const scheduler::TaskGraph& graph, DeviceStreams& streams, StreamBodies bodies);
  // Waits for what was launched; tasks that have not begun never do.
  ~StreamBackend() override;
  StreamBackend(const StreamBackend&) = delete;
  StreamBackend& operator=(const StreamBackend&) = delete;

  platform::Seconds now() const override;
  void submit(scheduler::TaskId task) override;
  // Errors: as backend.h; whatever a task threw that is no Error becomes Error(device) with the
  // task's name. A GPU's own errors name the task that was found unfinished.
  void run(const scheduler::CompletionHandler& handler) override;

  // stream_backend_steering.cpp. A GPU's task runs while it is being given to its streams, and
  // again from when they come to it.
  std::vector<EngineActivity> activity() const override;
  void hold() override;
  void release() override;
  void end_at_hold() override;
  bool at_rest() const override;

 private:
  enum class State : std::uint8_t { waiting, launched, done, delivered };
  struct Marks {
    EventId start = 0, end = 0;  // on the stream of the task's first engine
  };
  // The launched tasks of an engine, those whose first one it is.
  struct Line {
    std::deque<scheduler::TaskId> tasks;
    std::optional<platform::Seconds> front_reached;  // when the first of them ended
    std::vector<EventId> spare;                      // events of its stream
    platform::Seconds free;                          // end of the last task delivered
  };

  bool on_gpu(scheduler::TaskId task) const;
  void work(scheduler::TaskId task);
  void launch(scheduler::TaskId task);
  void run_on_cpu(scheduler::TaskId task);

  // All below expect mutex_ to be held.
  EventId take_event(scheduler::EngineId engine);
  void join(std::span<const scheduler::EngineId> engines, EventId mark);
  void dispatch();
  void hand_out(scheduler::TaskId task);
  bool under_way() const;
  bool goes_on(std::unique_lock<std::mutex>& lock);
  std::vector<scheduler::TaskId> given_to(scheduler::EngineId engine) const;
  void describe_given(std::span<const scheduler::TaskId> given, EngineActivity& activity) const;
  void describe_front(scheduler::TaskId front, EngineActivity& activity) const;
  std::optional<platform::Seconds> stream_came_to(scheduler::TaskId task) const;
  void fail(std::exception_ptr failure);
  std::optional<scheduler::Completion> next_completion();
  bool look_at(Line& line);
  scheduler::Completion deliver_front(Line& line);
  void forget_front(Line& line);
  scheduler::Completion settled(scheduler::Completion completion);
  bool all_delivered(std::span<const scheduler::TaskId> tasks) const;
  void drain(std::unique_lock<std::mutex>& lock);
  std::size_t launched() const;

  const scheduler::TaskGraph& graph_;
  DeviceStreams& streams_;
  const StreamBodies bodies_;
  const platform::Seconds origin_;

  mutable std::mutex mutex_;  // guards all below
  // Here a GPU's task is complete once it is launched: from then on events keep the order.
  scheduler::EngineQueues queues_;
  std::vector<State> state_;               // by task
  std::vector<Marks> marks_;               // by task, while it is launched
  std::vector<std::uint32_t> unfinished_;  // by CPU task that could begin but for GPU tasks
  std::vector<StreamId> stream_of_;        // by engine, of GPUs
  std::vector<Line> lines_;                // by engine
  std::vector<platform::Seconds> ends_;    // by task delivered
  std::deque<scheduler::Completion> cpu_done_;
  std::vector<scheduler::TaskId> startable_;
  platform::Seconds latest_;                              // end of the last completion delivered
  std::size_t at_work_ = 0;                               // tasks that engine threads have
  std::vector<std::optional<platform::Seconds>> handed_;  // by task that a thread has: since when
  StepHold hold_;
  bool handling_ = false;           // a completion, which may submit or report a step's end
  std::condition_variable unhold_;  // a run at rest goes on, or ends
  std::exception_ptr failure_;
  EngineThreads threads_;  // last: they use all above
};

}  // namespace offstage::exec
