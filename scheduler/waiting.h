#pragma once

#include <optional>
#include <span>
#include <vector>

#include "scheduler/task_graph.h"
#include "scheduler/trace.h"

// What each task of a trace waited for last, and the chains that follow from it.
namespace offstage::scheduler {

// Owner: graph and trace must outlive it.
class Waiting {
 public:
  // Precondition: a trace of the whole graph.
  Waiting(const TaskGraph& graph, const Trace& trace);

  // The predecessor, or the task before it on an engine it needs, that ended last; a predecessor
  // where both ended together. Empty: it waited for nothing.
  std::optional<TaskId> cause_of(TaskId task) const;

  // An engine's tasks as they ran.
  std::span<const TaskId> order(EngineId engine) const { return order_[engine]; }

  // The step in the middle of the trace, whose ends overlap with its neighbours as in a long run;
  // of two steps the second.
  const Interval& middle_step() const { return window_; }

  // From the last task of that step back along what each waited for last, up to the one that was
  // already running when the step began; in order of time.
  std::vector<TaskId> last_chain() const;

 private:
  const TaskGraph& graph_;
  const Trace& trace_;
  std::vector<std::vector<TaskId>> order_;   // by engine
  std::vector<std::vector<TaskId>> before_;  // by task: the ones before it on its engines
  Interval window_;
};

}  // namespace offstage::scheduler
