#include "scheduler/policies/timetable.h"

#include <algorithm>
#include <map>

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

}  // namespace

std::vector<Seconds> insert_in_order(const TaskGraph& graph, const std::vector<Seconds>& times,
                                     const std::vector<TaskId>& order, Direction direction) {
  std::vector<Timetable> timetables(graph.engines.size());
  std::vector<Seconds> starts(graph.size());
  for (const TaskId task : order) {
    const Seconds length = times[task];
    Seconds start;
    const auto before =
        direction == Direction::forward ? graph.predecessors(task) : graph.successors(task);
    for (const TaskId other : before) start = std::max(start, starts[other] + times[other]);
    // Until no engine has an objection; each only ever moves the start back.
    for (Seconds last{-1.0}; last != start;) {
      last = start;
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

}  // namespace offstage::scheduler
