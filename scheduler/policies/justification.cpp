#include "scheduler/policies/justification.h"

#include <algorithm>
#include <limits>

#include "scheduler/policies/timetable.h"

namespace offstage::scheduler {

using platform::Seconds;

namespace {

// Step graphs gain nothing after the second or third.
constexpr int kMostRounds = 6;

}  // namespace

std::vector<TaskId> justified_order(const TaskGraph& graph, const std::vector<Seconds>& times,
                                    std::vector<TaskId> order) {
  Seconds shortest{std::numeric_limits<double>::infinity()};
  std::vector<TaskId> best = order;
  for (int round = 0; round < kMostRounds; ++round) {
    const auto starts = insert_in_order(graph, times, order);
    Seconds end;
    for (TaskId task = 0; task < graph.size(); ++task) {
      end = std::max(end, starts[task] + times[task]);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](TaskId a, TaskId b) { return starts[a] < starts[b]; });
    if (end >= shortest) break;
    shortest = end;
    best = order;
    std::stable_sort(order.begin(), order.end(), [&](TaskId a, TaskId b) {
      return starts[a] + times[a] < starts[b] + times[b];
    });
    std::reverse(order.begin(), order.end());
    const auto ends = insert_in_order(graph, times, order, Direction::backward);
    std::reverse(order.begin(), order.end());
    std::stable_sort(order.begin(), order.end(),
                     [&](TaskId a, TaskId b) { return ends[a] + times[a] > ends[b] + times[b]; });
  }
  return best;
}

}  // namespace offstage::scheduler
