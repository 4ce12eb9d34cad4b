#include "exec/cpu_backend.h"

#include <thread>
#include <utility>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::exec {

using platform::Seconds;
using scheduler::Completion;
using scheduler::TaskId;
using scheduler::TaskKind;

namespace {

bool is_copy(TaskKind kind) { return kind == TaskKind::fetch || kind == TaskKind::offload; }

}  // namespace

CpuBackend::CpuBackend(const scheduler::TaskGraph& graph, TaskBody body, CpuBackendOptions options)
    : graph_(graph),
      body_(std::move(body)),
      options_(std::move(options)),
      queues_(graph),
      started_(graph.engines.size()),
      hold_(graph),
      threads_(graph.engines.size(), options_.on_thread_start,
               [this](TaskId task) { work(task); }) {}

Seconds CpuBackend::now() const {
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - origin_).count()};
}

void CpuBackend::submit(TaskId task) {
  const std::lock_guard lock(mutex_);
  startable_.clear();
  queues_.submit(task, startable_);
  dispatch(startable_);
}

void CpuBackend::run(const scheduler::CompletionHandler& handler) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (running_ == 0 && completions_.empty()) {
      dispatch(hold_.let_steps_end());
    }
    progress_.wait(lock, [this] { return !completions_.empty() || is_over(); });
    if (failure_ != nullptr || completions_.empty()) {
      break;
    }
    const Completion completion = completions_.front();
    completions_.pop_front();
    handling_ = true;
    lock.unlock();
    try {
      handler(completion);
      lock.lock();
    } catch (...) {
      lock.lock();
      fail(std::current_exception());
    }
    handling_ = false;
  }
  progress_.wait(lock, [this] { return running_ == 0; });
  if (failure_ != nullptr) {
    std::rethrow_exception(failure_);
  }
  if (hold_.holds_any()) {
    throw EndedOnRequest{};
  }
  if (queues_.in_flight() > 0) {
    throw Error(ErrorCode::device, fmt::format("{} submitted tasks can never start: {}",
                                               queues_.in_flight(), queues_.describe_waiting()));
  }
}

// Held tasks go on later, unless the run is to end there.
bool CpuBackend::is_over() const {
  return running_ == 0 && (!hold_.holds_any() || hold_.ending() || failure_ != nullptr);
}

std::vector<EngineActivity> CpuBackend::activity() const {
  const std::lock_guard lock(mutex_);
  std::vector<EngineActivity> all;
  for (const scheduler::Engine& made : graph_.engines) {
    const auto engine = static_cast<scheduler::EngineId>(all.size());
    EngineActivity& activity = all.emplace_back();
    activity.engine = made.name;
    activity.in_line = queues_.in_line(engine);
    const auto front = queues_.front(engine);
    if (!front) {
      continue;
    }
    activity.task = graph_.describe(*front);
    if (const auto started = started_[engine]) {
      activity.running_for = now() - *started;
    } else if (hold_.holds(*front)) {
      activity.waits_for = "the run is held";
    } else {
      activity.waits_for = queues_.describe_wait(*front);
    }
  }
  return all;
}

void CpuBackend::hold() {
  const std::lock_guard lock(mutex_);
  hold_.hold();
}

void CpuBackend::release() {
  const std::lock_guard lock(mutex_);
  dispatch(hold_.release());
}

void CpuBackend::end_at_hold() {
  const std::lock_guard lock(mutex_);
  hold_.end();
  progress_.notify_one();
}

bool CpuBackend::at_rest() const {
  const std::lock_guard lock(mutex_);
  return hold_.holding() && running_ == 0 && completions_.empty() && !handling_;
}

void CpuBackend::work(TaskId task) {
  const Seconds start = now();
  std::exception_ptr failure;
  try {
    execute(task);
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  // The end is read under the lock, so that completions queue up in time order.
  const Seconds end = now();
  --running_;
  hold_.complete(task);
  for (const scheduler::EngineId engine : graph_.task_engines(task)) {
    started_[engine].reset();
  }
  if (failure != nullptr) {
    fail(failure);
  } else {
    startable_.clear();
    queues_.complete(task, startable_);
    dispatch(startable_);
    completions_.push_back({.task = task, .start = start, .end = end});
  }
  progress_.notify_one();
}

void CpuBackend::execute(TaskId task) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    body_(task);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    throw Error(ErrorCode::device, fmt::format("{}: {}", graph_.describe(task), e.what()));
  }
  const scheduler::Task& work = graph_.tasks[task];
  if (!options_.copy_throttles.empty() && is_copy(work.kind)) {
    const Seconds least = work.bytes / options_.copy_throttles[work.gpu];
    std::this_thread::sleep_until(begin + std::chrono::duration<double>(least.value));
  }
}

void CpuBackend::dispatch(const std::vector<TaskId>& startable) {
  if (failure_ != nullptr) {
    return;  // the run is over; what has not started stays where it is
  }
  for (const TaskId task : startable) {
    if (!hold_.admit(task)) {
      continue;
    }
    for (const scheduler::EngineId engine : graph_.task_engines(task)) {
      started_[engine] = now();
    }
    ++running_;
    threads_.hand(graph_.task_engines(task).front(), task);
  }
}

void CpuBackend::fail(std::exception_ptr failure) {
  if (failure_ == nullptr) {
    failure_ = std::move(failure);
  }
}

}  // namespace offstage::exec
