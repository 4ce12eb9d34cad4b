#include "exec/run_controls.h"

namespace offstage::exec {

void RunControls::pause() {
  const std::lock_guard lock(mutex_);
  if (stop_) {
    return;
  }
  wishes_.pause = true;
  if (agrees_) {
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
  wishes_.pause = false;
  pause_ = false;
  if (backend_ != nullptr) {
    backend_->release();
  }
  changed_.notify_all();
}

void RunControls::stop() {
  const std::lock_guard lock(mutex_);
  wishes_.stop = true;
  if (!agrees_) {
    stop_ = true;
    if (backend_ != nullptr) {
      backend_->end_at_hold();
    }
  } else if (pause_ && !stop_) {
    // The others are in the next step, at whose end all can stop.
    wishes_.pause = pause_ = false;
    if (backend_ != nullptr) {
      backend_->release();
    }
  }
  changed_.notify_all();
}

void RunControls::agree_first() {
  const std::lock_guard lock(mutex_);
  agrees_ = true;
}

RunControls::Wishes RunControls::wishes() const {
  const std::lock_guard lock(mutex_);
  return wishes_;
}

void RunControls::agree(const Wishes& mine, const Wishes& all) {
  const std::lock_guard lock(mutex_);
  others_pause_ = all.pause && !mine.pause;
  if (all.stop) {
    stop_ = true;
    if (backend_ != nullptr) {
      backend_->end_at_hold();
    }
  } else if (mine.pause && wishes_.pause) {
    pause_ = true;
    if (backend_ != nullptr) {
      backend_->hold();
    }
  }
}

RunControls::State RunControls::state_locked() const {
  if (stop_ || wishes_.stop) {
    return State::stopping;
  }
  if (!pause_) {
    return wishes_.pause ? State::pausing : State::running;
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
  // Tasks that wait for a paused host are not at work.
  return backend_ != nullptr && !others_pause_ ? backend_->activity()
                                               : std::vector<EngineActivity>{};
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
