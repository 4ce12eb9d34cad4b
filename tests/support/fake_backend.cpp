#include "tests/support/fake_backend.h"

#include <exception>
#include <utility>

#include "platform/error.h"

namespace offstage::testing {

using scheduler::TaskId;

FakeBackend::FakeBackend(const scheduler::TaskGraph& graph,
                         std::vector<platform::Seconds> durations)
    : graph_(graph), queues_(graph), durations_(std::move(durations)) {}

void FakeBackend::submit(TaskId task) {
  submitted_.push_back(task);
  queues_.submit(task, startable_);
  start_all();
}

void FakeBackend::start_all() {
  for (const TaskId task : startable_) running_.push({now_, now_ + durations_[task], task});
  startable_.clear();
}

void FakeBackend::run(const scheduler::CompletionHandler& handler) {
  std::exception_ptr error;
  while (!running_.empty()) {
    const Running next = running_.top();
    running_.pop();
    now_ = next.end;
    if (error) continue;  // what is running ends; nothing new is started
    try {
      if (next.task == failing_) {
        throw Error(ErrorCode::device, graph_.describe(next.task) + ": made to fail");
      }
      queues_.complete(next.task, startable_);
      start_all();
      handler({next.task, next.start, next.end});
    } catch (...) {
      error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
  if (queues_.in_flight() > 0) {
    throw Error(ErrorCode::device, "tasks can never start: " + queues_.describe_waiting());
  }
}

}  // namespace offstage::testing
