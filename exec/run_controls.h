#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string_view>
#include <vector>

#include "exec/steerable_backend.h"

// How other threads steer a training: pause, go on, stop. They ask; the trainer obeys at the end of
// the step that is under way (steerable_backend.h, Note [Holding a run]). With several hosts all
// must stop at the same step, so what is asked of one waits until it is agreed on
// (task_runner_hosts.cpp); a pause holds the host that was asked, and the others wait for it in the
// next step.
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

  // With several hosts.
  struct Wishes {
    bool stop = false;
    bool pause = false;
  };
  void agree_first();     // from now on stop and pause wait for agree()
  Wishes wishes() const;  // of this host
  // mine: what the others were told of this one; all: of any. Called within a step.
  void agree(const Wishes& mine, const Wishes& all);

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
  bool agrees_ = false;                  // with other hosts
  bool others_pause_ = false;
  Wishes wishes_;
  bool pause_ = false;  // what is obeyed
  bool stop_ = false;
};

std::string_view to_string(RunControls::State state);

}  // namespace offstage::exec
