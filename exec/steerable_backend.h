#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "platform/units.h"
#include "scheduler/backend.h"

// A backend that carries out a real training: other threads see what it is at and bring it to rest.
namespace offstage::exec {

// What an engine is at.
struct EngineActivity {
  std::string engine;
  std::string task;       // running, or the first in line; empty when there is none
  std::string waits_for;  // why the first in line does not run; empty when it does
  std::optional<platform::Seconds> running_for;
  std::size_t in_line = 0;  // tasks, with this one
};

// Thrown by run() after end_at_hold(): what was left to run never will be.
struct EndedOnRequest {};

// Note [Holding a run]
// A run is brought to rest at the end of a step. Tasks of steps that have begun go on to their
// end; those of later steps are held back, also when they could start. Then nothing runs, no slot
// is in use, and the state is that of the last step's end. (A policy may have put a task of a later
// step in line before one of an earlier step: then that later step ends, too.) Held tasks start
// with release(), or never after end_at_hold(). A task has begun once it is handed to a thread,
// also to one that gives it to a GPU's stream: what a stream has can't be taken back.

// Thread: submit() and run() from one thread; all below from any.
class SteerableBackend : public scheduler::Backend {
 public:
  // run() besides: EndedOnRequest when it leaves tasks undone after end_at_hold().
  virtual std::vector<EngineActivity> activity() const = 0;  // by engine
  virtual void hold() = 0;
  virtual void release() = 0;
  virtual void end_at_hold() = 0;
  virtual bool at_rest() const = 0;  // held, nothing runs, and every completion has been handled
};

}  // namespace offstage::exec
