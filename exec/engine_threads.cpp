#include "exec/engine_threads.h"

#include <utility>

namespace offstage::exec {

EngineThreads::EngineThreads(std::size_t engines, std::function<void()> on_start,
                             std::function<void(scheduler::TaskId)> work)
    : on_start_(std::move(on_start)), work_(std::move(work)) {
  for (std::size_t engine = 0; engine < engines; ++engine) {
    Worker& worker = workers_.emplace_back();
    worker.thread = std::jthread([this, &worker] { run(worker); });
  }
}

EngineThreads::~EngineThreads() {
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

void EngineThreads::hand(scheduler::EngineId engine, scheduler::TaskId task) {
  const std::lock_guard lock(mutex_);
  if (stopping_) {
    return;
  }
  workers_[engine].next = task;
  workers_[engine].wake.notify_one();
}

void EngineThreads::run(Worker& worker) {
  if (on_start_) {
    on_start_();
  }
  std::unique_lock lock(mutex_);
  while (true) {
    worker.wake.wait(lock, [&] { return worker.next.has_value() || stopping_; });
    if (!worker.next.has_value()) {
      return;
    }
    const scheduler::TaskId task = *worker.next;
    worker.next.reset();
    lock.unlock();
    work_(task);
    lock.lock();
  }
}

}  // namespace offstage::exec
