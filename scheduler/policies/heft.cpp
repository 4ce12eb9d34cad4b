#include <algorithm>
#include <map>

#include "scheduler/policies/ordered_policy.h"
#include "scheduler/policies/registry.h"
#include "scheduler/policies/upward_rank.h"

// Heterogeneous Earliest Finish Time: a schedule made before the run, from lone times. Tasks by
// upward rank, each as early as its predecessors and engines allow, also in a gap that earlier
// choices left. Which GPU a task runs on is the plan's decision (Strategy::shares), so that of
// HEFT's two choices the order is left; the run then keeps to it.
// Source: Topcuoglu, Hariri, Wu, IEEE TPDS 13(3), 2002, section 4.
namespace offstage::scheduler {
namespace {

using platform::Seconds;

// When an engine is taken: end by start.
class Timetable {
 public:
  // The earliest time from `from` on at which the engine is free for `length`.
  Seconds earliest(Seconds from, Seconds length) const {
    auto next = taken_.upper_bound(from);
    if (next != taken_.begin()) from = std::max(from, std::prev(next)->second);
    while (next != taken_.end() && next->first < from + length) {
      from = std::max(from, next->second);
      ++next;
    }
    return from;
  }
  // Neighbours without a gap become one: a busy engine then has few entries.
  void take(Seconds start, Seconds end) {
    if (end == start) return;
    auto next = taken_.lower_bound(start);
    if (next != taken_.end() && next->first == end) {
      end = next->second;
      next = taken_.erase(next);
    }
    if (next != taken_.begin() && std::prev(next)->second == start) {
      std::prev(next)->second = end;
    } else {
      taken_.emplace_hint(next, start, end);
    }
  }

 private:
  std::map<Seconds, Seconds> taken_;
};

std::vector<Seconds> schedule(const PolicyInput& input, const std::vector<TaskId>& by_rank) {
  const TaskGraph& graph = input.graph;
  std::vector<Timetable> timetables(graph.engines.size());
  std::vector<Seconds> starts(graph.size());
  for (const TaskId task : by_rank) {
    const Seconds length = input.lone_times[task];
    Seconds start;
    for (const TaskId predecessor : graph.predecessors(task)) {
      start = std::max(start, starts[predecessor] + input.lone_times[predecessor]);
    }
    // Until no engine has an objection; each only ever moves the start back.
    for (Seconds before{-1.0}; before != start;) {
      before = start;
      for (const EngineId engine : graph.task_engines(task)) {
        start = timetables[engine].earliest(start, length);
      }
    }
    for (const EngineId engine : graph.task_engines(task)) {
      timetables[engine].take(start, start + length);
    }
    starts[task] = start;
  }
  return starts;
}

}  // namespace

std::unique_ptr<Policy> make_heft(const PolicyInput& input) {
  // By rank a task comes after its predecessors only where none takes no time: ids break ties.
  auto order = tasks_by_rank(upward_ranks(input.graph, input.lone_times));
  const auto starts = schedule(input, order);
  // Tasks that start together, one of which takes no time, stay in order of rank.
  std::stable_sort(order.begin(), order.end(),
                   [&](TaskId a, TaskId b) { return starts[a] < starts[b]; });
  return std::make_unique<OrderedPolicy>(input, order);
}

}  // namespace offstage::scheduler
