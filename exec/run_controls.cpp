#include "exec/run_controls.h"

namespace offstage::exec {

void RunControls::pause() {
  const std::lock_guard lock(mutex_);
  if (stop_) {
    return;
  }
  pause_ = true;
  if (backend_ != nullptr) {
    backend_->hold();
  }
}

void RunControls::resume() {
  const std::lock_guard lock(mutex_);
  if (stop_) {
    return;
  }
  pause_ = false;
  if (backend_ != nullptr) {
    backend_->release();
  }
  changed_.notify_all();
}

void RunControls::stop() {
  const std::lock_guard lock(mutex_);
  stop_ = true;
  if (backend_ != nullptr) {
    backend_->end_at_hold();
  }
  changed_.notify_all();
}

RunControls::State RunControls::state_locked() const {
  if (stop_) {
    return State::stopping;
  }
  if (!pause_) {
    return State::running;
  }
  const bool rests = backend_ != nullptr ? backend_->at_rest() : waiting_;
  return rests ? State::paused : State::pausing;
}

RunControls::State RunControls::state() const {
  const std::lock_guard lock(mutex_);
  return state_locked();
}

bool RunControls::stop_requested() const {
  const std::lock_guard lock(mutex_);
  return stop_;
}

std::vector<EngineActivity> RunControls::activity() const {
  const std::lock_guard lock(mutex_);
  return backend_ != nullptr ? backend_->activity() : std::vector<EngineActivity>{};
}

bool RunControls::while_paused(const std::function<void()>& work) {
  const std::lock_guard lock(mutex_);
  if (state_locked() != State::paused) {
    return false;
  }
  work();
  return true;
}

bool RunControls::may_continue() {
  std::unique_lock lock(mutex_);
  waiting_ = true;
  changed_.wait(lock, [this] { return stop_ || !pause_; });
  waiting_ = false;
  return !stop_;
}

RunControls::Window::Window(RunControls& controls, SteerableBackend& backend)
    : controls_(controls) {
  const std::lock_guard lock(controls_.mutex_);
  controls_.backend_ = &backend;
  if (controls_.stop_) {
    backend.end_at_hold();
  } else if (controls_.pause_) {
    backend.hold();
  }
}

RunControls::Window::~Window() {
  const std::lock_guard lock(controls_.mutex_);
  controls_.backend_ = nullptr;
}

std::string_view to_string(RunControls::State state) {
  switch (state) {
    case RunControls::State::running:
      return "running";
    case RunControls::State::pausing:
      return "pausing";
    case RunControls::State::paused:
      return "paused";
    case RunControls::State::stopping:
      return "stopping";
  }
  return "running";
}

}  // namespace offstage::exec
