#pragma once

#include <cstddef>
#include <optional>
#include <queue>
#include <vector>

#include "scheduler/backend.h"
#include "scheduler/engine_queues.h"

// The smallest backend: every task takes a time given beforehand, nothing is shared. For tests of
// what stands above a backend.
namespace offstage::testing {

class FakeBackend final : public scheduler::Backend {
 public:
  FakeBackend(const scheduler::TaskGraph& graph, std::vector<platform::Seconds> durations);

  // This task throws Error(device) when its time is up.
  void fail(scheduler::TaskId task) { failing_ = task; }
  // In the order of the calls, for tests of policies.
  const std::vector<scheduler::TaskId>& submitted() const { return submitted_; }

  platform::Seconds now() const override { return now_; }
  void submit(scheduler::TaskId task) override;
  void run(const scheduler::CompletionHandler& handler) override;

 private:
  struct Running {
    platform::Seconds start, end;
    scheduler::TaskId task = 0;
    // The standard queue keeps the largest on top.
    friend bool operator<(const Running& a, const Running& b) {
      return a.end != b.end ? a.end > b.end : a.task > b.task;
    }
  };
  void start_all();

  const scheduler::TaskGraph& graph_;
  scheduler::EngineQueues queues_;
  std::vector<platform::Seconds> durations_;
  std::optional<scheduler::TaskId> failing_;
  std::priority_queue<Running> running_;
  std::vector<scheduler::TaskId> startable_, submitted_;
  platform::Seconds now_;
};

}  // namespace offstage::testing
