#include "scheduler/policies/list_policy.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::scheduler {

ListPolicy::ListPolicy(const PolicyInput& input, std::vector<std::uint32_t> order,
                       Readiness readiness)
    : graph_(input.graph),
      order_(std::move(order)),
      readiness_(readiness),
      submit_ahead_(input.submit_ahead),
      missing_(graph_.size()),
      in_flight_(graph_.engines.size()),
      heaps_(graph_.engines.size()) {
  for (TaskId task = 0; task < graph_.size(); ++task) {
    missing_[task] = static_cast<std::uint32_t>(graph_.predecessors(task).size());
    OFFSTAGE_CHECK(!graph_.task_engines(task).empty(),
                   fmt::format("task {} has no engine: {}", task, graph_.describe(task)));
  }
}

void ListPolicy::push(EngineId engine, Ready ready) {
  heaps_[engine].push_back(ready);
  std::push_heap(heaps_[engine].begin(), heaps_[engine].end());
}

void ListPolicy::add_ready(TaskId task) {
  const std::uint32_t order = order_.empty() ? became_ready_++ : order_[task];
  push(graph_.task_engines(task).front(), {order, task});
}

void ListPolicy::start(std::vector<TaskId>& submit) {
  for (TaskId task = 0; task < graph_.size(); ++task) {
    if (missing_[task] == 0) add_ready(task);
  }
  for (std::size_t engine = 0; engine < heaps_.size(); ++engine) {
    fill(static_cast<EngineId>(engine), submit);
  }
}

bool ListPolicy::follows(TaskId task, TaskId predecessor) const {
  if (readiness_ == Readiness::complete) return false;
  const auto engines = graph_.task_engines(task), before = graph_.task_engines(predecessor);
  return std::find_first_of(engines.begin(), engines.end(), before.begin(), before.end()) !=
         engines.end();
}

void ListPolicy::lift(TaskId task) {
  if (--missing_[task] == 0) add_ready(task);
}

void ListPolicy::step(const Completion& completion, platform::Seconds /*now*/,
                      std::vector<TaskId>& submit) {
  const auto engines = graph_.task_engines(completion.task);
  const auto successors = graph_.successors(completion.task);  // by id
  for (const EngineId engine : engines) --in_flight_[engine];
  for (const TaskId successor : successors) {
    if (!follows(successor, completion.task)) lift(successor);
  }
  for (const EngineId engine : engines) fill(engine, submit);
  for (const TaskId successor : successors) {
    if (missing_[successor] == 0) fill(graph_.task_engines(successor).front(), submit);
  }
}

// Submits from an engine's heap while it has room; a task that also needs a full engine moves on to
// that one's heap.
void ListPolicy::fill(EngineId engine, std::vector<TaskId>& submit) {
  Heap& heap = heaps_[engine];
  while (has_room(engine) && !heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Ready best = heap.back();
    heap.pop_back();
    const auto engines = graph_.task_engines(best.task);
    const auto full = std::find_if(engines.begin(), engines.end(),
                                   [this](EngineId other) { return !has_room(other); });
    if (full != engines.end()) {
      push(*full, best);
      continue;
    }
    for (const EngineId other : engines) ++in_flight_[other];
    submit.push_back(best.task);
    for (const TaskId successor : graph_.successors(best.task)) {
      if (!follows(successor, best.task)) continue;
      lift(successor);
      const EngineId home = graph_.task_engines(successor).front();
      if (missing_[successor] == 0 && home != engine) fill(home, submit);
    }
  }
}

}  // namespace offstage::scheduler
