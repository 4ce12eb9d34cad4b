#include "report/trace_counters.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

namespace offstage::report {
namespace {

using scheduler::SlotUse;
using scheduler::TaskId;

// A change of one value of one counter. Integers, so that what went up comes down to zero exactly.
struct Change {
  Nanoseconds at = 0;
  std::size_t counter = 0;
  int series = 0;
  std::int64_t delta = 0;
};

constexpr int kSlots = 0;
constexpr int kWorking = 1;
constexpr int kKept = 2;
constexpr int kSeries = 3;

class Changes {
 public:
  explicit Changes(const TraceWindow& window) : offset_(window.offset) {}

  void add(std::size_t counter, int series, const scheduler::Interval& when, std::int64_t value) {
    const Nanoseconds start = to_nanoseconds(offset_ + when.start);
    const Nanoseconds end = to_nanoseconds(offset_ + when.end);
    if (value == 0 || end <= start) return;
    changes_.push_back({start, counter, series, value});
    changes_.push_back({end, counter, series, -value});
  }

  // Calls emit(at, counter, values of all series) once for each counter and moment.
  template <typename Emit>
  void walk(std::size_t counters, const Emit& emit) {
    std::ranges::sort(changes_, [](const Change& a, const Change& b) {
      return a.at != b.at ? a.at < b.at : a.counter < b.counter;
    });
    struct Values {
      std::int64_t series[kSeries] = {};
    };
    std::vector<Values> values(counters);
    for (std::size_t counter = 0; counter < counters; ++counter) {
      emit(to_nanoseconds(offset_), counter, values[counter].series);
    }
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      const Change& change = changes_[i];
      values[change.counter].series[change.series] += change.delta;
      const bool last = i + 1 == changes_.size() || changes_[i + 1].at != change.at ||
                        changes_[i + 1].counter != change.counter;
      if (last) emit(change.at, change.counter, values[change.counter].series);
    }
  }

 private:
  platform::Seconds offset_;
  std::vector<Change> changes_;
};

// Occupants of each slot in turn: from the start of the task that acquires to the end of the last
// one that releases.
void add_slots(const TraceWindow& window, Changes& changes) {
  const scheduler::TaskGraph& graph = window.graph;
  std::vector<std::optional<scheduler::Interval>> occupants(graph.slots.size());
  const auto close = [&](std::size_t slot) {
    if (!occupants[slot]) return;
    const auto& [kind, pool, gpu, index, bytes] = graph.slots[slot];
    changes.add(pool, kSlots, *occupants[slot], bytes.value);
    if (kind == scheduler::SlotKind::kept) changes.add(pool, kKept, *occupants[slot], bytes.value);
    occupants[slot].reset();
  };
  // Task ids follow program order, and in program order the occupants of a slot follow each other.
  for (TaskId task = 0; task < graph.size(); ++task) {
    const scheduler::Interval& ran = window.trace.tasks[task];
    for (const SlotUse& use : graph.uses(task)) {
      if (use.acquires) {
        close(use.slot);
        occupants[use.slot] = ran;
      }
      auto& occupant = occupants[use.slot];
      if (occupant) occupant->end = std::max(occupant->end, ran.end);
    }
  }
  for (std::size_t slot = 0; slot < occupants.size(); ++slot) close(slot);
}

}  // namespace

Nanoseconds to_nanoseconds(platform::Seconds time) { return std::llround(time.value * 1e9); }

std::vector<PoolPoint> pool_points(const TraceWindow& window, const platform::Machine& machine) {
  Changes changes(window);
  add_slots(window, changes);
  for (TaskId task = 0; task < window.costs.size(); ++task) {
    const platform::Bytes transient = window.costs[task].transient;
    if (transient.value == 0) continue;
    changes.add(machine.gpus[window.graph.tasks[task].gpu].pool, kWorking, window.trace.tasks[task],
                transient.value);
  }
  std::vector<PoolPoint> points;
  changes.walk(machine.pools.size(), [&](Nanoseconds at, std::size_t pool, const auto& values) {
    points.push_back({at, pool, values[kSlots], values[kWorking], values[kKept]});
  });
  return points;
}

std::vector<LinkPoint> link_points(const TraceWindow& window, const platform::Machine& machine) {
  Changes changes(window);
  for (TaskId task = 0; task < window.costs.size(); ++task) {
    const scheduler::TaskCost& cost = window.costs[task];
    const scheduler::Interval& ran = window.trace.tasks[task];
    const platform::Seconds took = ran.end - ran.start;
    if (!cost.route || took.value <= 0.0) continue;
    // A link named twice in a route is loaded twice.
    for (const platform::LinkId link : machine.routes[*cost.route].links) {
      changes.add(link, 0, ran, std::llround(cost.amount / took.value));
    }
  }
  std::vector<LinkPoint> points;
  changes.walk(machine.links.size(), [&](Nanoseconds at, std::size_t link, const auto& values) {
    points.push_back({at, link, values[0]});
  });
  return points;
}

}  // namespace offstage::report
