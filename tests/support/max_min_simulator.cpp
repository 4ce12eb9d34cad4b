#include "tests/support/max_min_simulator.h"

#include <algorithm>
#include <limits>

namespace offstage::testing {

using scheduler::TaskId;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// A flow with less than this part of its amount left has ended; what is left is rounding.
constexpr double kRounding = 1e-13;

}  // namespace

std::vector<double> max_min_rates(const platform::Machine& machine,
                                  const std::vector<platform::RouteId>& routes) {
  std::vector<double> rates(routes.size(), 0.0);
  std::vector<bool> fixed(routes.size(), false);
  std::vector<double> free(machine.links.size());
  for (std::size_t l = 0; l < free.size(); ++l) free[l] = machine.links[l].capacity.value.value;
  const auto load = [&](std::size_t flow, platform::LinkId link) {
    const auto& path = machine.routes[routes[flow]].links;
    return static_cast<double>(std::count(path.begin(), path.end(), link));
  };
  for (std::size_t left = routes.size(); left > 0;) {
    // The level at which the next link fills up, or the next flow reaches its cap.
    double level = kNever;
    std::size_t tightest = 0;
    std::vector<double> loads(free.size(), 0.0);
    for (std::size_t l = 0; l < free.size(); ++l) {
      for (std::size_t f = 0; f < routes.size(); ++f) {
        if (fixed[f]) continue;
        loads[l] = machine.links[l].caps_each_flow ? std::max(loads[l], load(f, l))
                                                   : loads[l] + load(f, l);
      }
      if (loads[l] > 0.0 && free[l] / loads[l] < level) {
        level = free[l] / loads[l];
        tightest = l;
      }
    }
    for (std::size_t f = 0; f < routes.size(); ++f) {
      const bool capped = machine.links[tightest].caps_each_flow;
      const double own = load(f, tightest);
      if (fixed[f] || own == 0.0 || (capped && own < loads[tightest])) continue;
      fixed[f] = true;
      --left;
      rates[f] = level;
      for (std::size_t l = 0; l < free.size(); ++l) {
        if (!machine.links[l].caps_each_flow) free[l] = std::max(0.0, free[l] - level * load(f, l));
      }
    }
  }
  return rates;
}

MaxMinSimulator::MaxMinSimulator(const platform::Machine& machine,
                                 const scheduler::TaskGraph& graph,
                                 const std::vector<scheduler::TaskCost>& costs)
    : machine_(machine), graph_(graph), costs_(costs), progress_(graph.size()) {}

void MaxMinSimulator::submit(TaskId task) {
  progress_[task].phase = Phase::submitted;
  in_flight_.push_back(task);
}

// First on all its engines, predecessors complete.
bool MaxMinSimulator::can_start(TaskId task) const {
  if (progress_[task].phase != Phase::submitted) return false;
  for (const TaskId predecessor : graph_.predecessors(task)) {
    if (progress_[predecessor].phase != Phase::complete) return false;
  }
  const auto mine = graph_.task_engines(task);
  for (const TaskId other : in_flight_) {
    if (other == task) return true;
    for (const auto engine : graph_.task_engines(other)) {
      if (std::find(mine.begin(), mine.end(), engine) != mine.end()) return false;
    }
  }
  return true;
}

void MaxMinSimulator::start_what_can() {
  for (const TaskId task : in_flight_) {
    if (!can_start(task)) continue;
    const auto& cost = costs_[task];
    const double latency = cost.route ? machine_.routes[*cost.route].latency.value : 0.0;
    progress_[task] = {Phase::delayed, now_, now_ + (cost.exclusive.value + latency),
                       cost.route ? cost.amount : 0.0};
  }
}

// By id.
std::vector<TaskId> MaxMinSimulator::ended() const {
  std::vector<TaskId> result;
  for (const TaskId task : in_flight_) {
    const Progress& p = progress_[task];
    const bool flowed = p.phase == Phase::flowing && p.remaining <= kRounding * costs_[task].amount;
    const bool waited = p.phase == Phase::delayed && p.delayed_until <= now_ && p.remaining == 0.0;
    if (flowed || waited) result.push_back(task);
  }
  std::sort(result.begin(), result.end());
  return result;
}

// To the next end of a delay or a flow.
void MaxMinSimulator::advance() {
  std::vector<TaskId> flowing;
  std::vector<platform::RouteId> routes;
  double alarm = kNever;
  for (const TaskId task : in_flight_) {
    Progress& p = progress_[task];
    if (p.phase == Phase::delayed && p.delayed_until <= now_) p.phase = Phase::flowing;
    if (p.phase == Phase::delayed) alarm = std::min(alarm, p.delayed_until);
    if (p.phase != Phase::flowing) continue;
    flowing.push_back(task);
    routes.push_back(*costs_[task].route);
  }
  const auto rates = max_min_rates(machine_, routes);
  // A length, not a time: the difference of two times would be too coarse for a short flow.
  double length = alarm - now_;
  for (std::size_t i = 0; i < flowing.size(); ++i) {
    length = std::min(length, progress_[flowing[i]].remaining / rates[i]);
  }
  for (std::size_t i = 0; i < flowing.size(); ++i) {
    progress_[flowing[i]].remaining -= rates[i] * length;
  }
  now_ = length < alarm - now_ ? now_ + length : alarm;
}

void MaxMinSimulator::run(const scheduler::CompletionHandler& handler) {
  start_what_can();
  while (!in_flight_.empty()) {
    auto done = ended();
    if (done.empty()) {
      advance();
      continue;
    }
    for (const TaskId task : done) {
      progress_[task].phase = Phase::complete;
      in_flight_.erase(std::find(in_flight_.begin(), in_flight_.end(), task));
      handler({task, {progress_[task].start}, {now_}});
    }
    start_what_can();
  }
}

}  // namespace offstage::testing
