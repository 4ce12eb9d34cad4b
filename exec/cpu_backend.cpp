#include "exec/cpu_backend.h"

#include <algorithm>
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
      left_in_step_(graph.steps) {
  for (const scheduler::Task& task : graph_.tasks) {
    ++left_in_step_[task.step];
  }
  for (std::size_t engine = 0; engine < graph_.engines.size(); ++engine) {
    Worker& worker = workers_.emplace_back();
    worker.thread = std::jthread([this, &worker] { work(worker); });
  }
}

CpuBackend::~CpuBackend() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  for (Worker& worker : workers_) {
    worker.wake.notify_one();
  }
  for (Worker& worker : workers_) {
    worker.thread.join();
  }
}

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
    let_step_end();
    progress_.wait(lock, [this] { return !completions_.empty() || is_over(); });
    if (failure_ != nullptr || completions_.empty()) {
      break;
    }
    const Completion completion = completions_.front();
    completions_.pop_front();
    lock.unlock();
    try {
      handler(completion);
      lock.lock();
    } catch (...) {
      lock.lock();
      fail(std::current_exception());
    }
  }
  progress_.wait(lock, [this] { return running_ == 0; });
  if (failure_ != nullptr) {
    std::rethrow_exception(failure_);
  }
  if (ending_) {
    throw EndedOnRequest{};
  }
  if (queues_.in_flight() > 0) {
    throw Error(ErrorCode::device, fmt::format("{} submitted tasks can never start: {}",
                                               queues_.in_flight(), queues_.describe_waiting()));
  }
}

// Lets one more step begin when otherwise the ones that have begun could not end: Note [Holding a
// run].
void CpuBackend::let_step_end() {
  if (!latest_step_ || held_.empty() || running_ > 0 || !completions_.empty()) {
    return;
  }
  const auto begun = left_in_step_.begin() + *latest_step_ + 1;
  if (std::any_of(left_in_step_.begin(), begun, [](std::uint32_t left) { return left > 0; })) {
    ++*latest_step_;
    dispatch(std::exchange(held_, {}));
  }
}

// Held tasks go on later, unless the run is to end there.
bool CpuBackend::is_over() const {
  return running_ == 0 && (held_.empty() || ending_ || failure_ != nullptr);
}

std::vector<EngineActivity> CpuBackend::activity() const {
  const std::lock_guard lock(mutex_);
  std::vector<EngineActivity> all;
  for (scheduler::EngineId engine = 0; engine < graph_.engines.size(); ++engine) {
    EngineActivity& activity = all.emplace_back();
    activity.engine = graph_.engines[engine].name;
    activity.in_line = queues_.in_line(engine);
    const auto front = queues_.front(engine);
    if (!front) {
      continue;
    }
    activity.task = graph_.describe(*front);
    if (const auto started = started_[engine]) {
      activity.running_for = now() - *started;
    } else if (std::find(held_.begin(), held_.end(), *front) != held_.end()) {
      activity.waits_for = "the run is held";
    } else {
      activity.waits_for = queues_.describe_wait(*front);
    }
  }
  return all;
}

void CpuBackend::hold() {
  const std::lock_guard lock(mutex_);
  holding_ = true;
}

void CpuBackend::release() {
  const std::lock_guard lock(mutex_);
  holding_ = false;
  dispatch(std::exchange(held_, {}));
}

void CpuBackend::end_at_hold() {
  const std::lock_guard lock(mutex_);
  holding_ = true;
  ending_ = true;
  progress_.notify_one();
}

bool CpuBackend::at_rest() const {
  const std::lock_guard lock(mutex_);
  return holding_ && running_ == 0 && completions_.empty();
}

std::optional<std::uint32_t> CpuBackend::latest_step() const {
  const std::lock_guard lock(mutex_);
  return latest_step_;
}

void CpuBackend::work(Worker& worker) {
  if (options_.on_thread_start) {
    options_.on_thread_start();
  }
  std::unique_lock lock(mutex_);
  while (true) {
    worker.wake.wait(lock, [&] { return worker.next.has_value() || stopping_; });
    if (!worker.next.has_value()) {
      return;
    }
    const TaskId task = *worker.next;
    worker.next.reset();
    lock.unlock();
    const Seconds start = now();
    std::exception_ptr failure;
    try {
      execute(task);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    // The end is read under the lock, so that completions queue up in time order.
    const Seconds end = now();
    --running_;
    --left_in_step_[graph_.tasks[task].step];
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
  if (options_.copy_throttle.has_value() && is_copy(work.kind)) {
    const Seconds least = work.bytes / *options_.copy_throttle;
    std::this_thread::sleep_until(begin + std::chrono::duration<double>(least.value));
  }
}

void CpuBackend::dispatch(const std::vector<TaskId>& startable) {
  if (failure_ != nullptr || stopping_) {
    return;  // the run is over; what has not started stays where it is
  }
  for (const TaskId task : startable) {
    const std::uint32_t step = graph_.tasks[task].step;
    if (holding_ && (!latest_step_ || step > *latest_step_)) {
      held_.push_back(task);
      continue;
    }
    latest_step_ = std::max(latest_step_.value_or(0), step);
    for (const scheduler::EngineId engine : graph_.task_engines(task)) {
      started_[engine] = now();
    }
    Worker& worker = workers_[graph_.task_engines(task).front()];
    worker.next = task;
    ++running_;
    worker.wake.notify_one();
  }
}

void CpuBackend::fail(std::exception_ptr failure) {
  if (failure_ == nullptr) {
    failure_ = std::move(failure);
  }
}

}  // namespace offstage::exec
