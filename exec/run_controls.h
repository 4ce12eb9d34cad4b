#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string_view>
#include <vector>

#include "exec/steerable_backend.h"

// How other threads steer a training: pause, go on, stop. They ask; the trainer obeys at the end of
// the step that is under way (steerable_backend.h, Note [Holding a run]).
namespace offstage::exec {

class RunControls {
 public:
  enum class State { running, pausing, paused, stopping };

  // Thread: any, for these.
  void pause();
  void resume();
  void stop();  // for good; a paused run is stopped as well
  State state() const;
  bool stop_requested() const;
  std::vector<EngineActivity> activity() const;  // empty between two windows
  // Calls `work` if the run is paused and keeps it so meanwhile. Returns whether it was.
  bool while_paused(const std::function<void()>& work);

  // The trainer's own.
  // Waits while the run is paused; false once it is to stop.
  bool may_continue();
  // Makes the backend of a window known for its life.
  class Window {
   public:
    Window(RunControls& controls, SteerableBackend& backend);
    ~Window();
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

   private:
    RunControls& controls_;
  };

 private:
  State state_locked() const;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  SteerableBackend* backend_ = nullptr;  // of the window that runs
  bool waiting_ = false;                 // the trainer, between two windows
  bool pause_ = false;
  bool stop_ = false;
};

std::string_view to_string(RunControls::State state);

}  // namespace offstage::exec
