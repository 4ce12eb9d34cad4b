#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "scheduler/policies/contention.h"
#include "scheduler/policies/justification.h"
#include "scheduler/policies/list_policy.h"
#include "scheduler/policies/ordered_policy.h"
#include "scheduler/policies/registry.h"
#include "scheduler/policies/rehearsal.h"
#include "scheduler/policies/upward_rank.h"
#include "scheduler/reference_schedule.h"

// Ours. Before the run it draws up several orders of the tasks, with the times that copies take
// where links are shared, and rehearses each, as priorities and as a fixed order; the run goes by
// the best. With priorities a task that is late holds up nothing but what needs it.
namespace offstage::scheduler {
namespace {

using platform::Seconds;

// Upward ranks where a compute engine's tasks also wait for each other, in the plan's order: to
// finish a sub-model's micro-batches frees its slots for the next.
std::vector<Seconds> ranks_in_plan_order(const TaskGraph& graph,
                                         const std::vector<Seconds>& times) {
  std::vector<Seconds> ranks(graph.size());
  std::vector<Seconds> next(graph.engines.size());  // rank of a compute engine's next task
  for (auto task = static_cast<TaskId>(graph.size()); task-- > 0;) {
    Seconds longest;
    for (const TaskId successor : graph.successors(task)) {
      longest = std::max(longest, ranks[successor]);
    }
    for (const EngineId engine : graph.task_engines(task))
      longest = std::max(longest, next[engine]);
    ranks[task] = times[task] + longest;
    for (const EngineId engine : graph.task_engines(task)) {
      if (graph.engines[engine].kind == EngineKind::compute) next[engine] = ranks[task];
    }
  }
  return ranks;
}

// Sums in another order differ in their last digits.
constexpr double kAnyGain = 1e-9;
// A fixed order makes everything wait for one late task: it must be worth that.
constexpr double kGainOfFixedOrder = 0.005;

// Graphs so small are searched for a while; larger ones would not come far.
constexpr std::size_t kSmallGraph = 300;
constexpr std::int64_t kSearchNodes = 5000;

// In whole parts of the longest time: sums are exact then, and what is equal stays equal whatever
// the unit or the order of adding up. Without it, rounding errors would choose among equal tasks.
std::vector<Seconds> in_whole_parts(std::vector<Seconds> times) {
  constexpr double kParts = 1 << 24;  // fewer would blur, more would lose digits in sums
  const Seconds longest = times.empty() ? Seconds{} : *std::ranges::max_element(times);
  if (!(longest > Seconds{})) return times;
  for (Seconds& time : times) time = {std::round(time / longest * kParts)};
  return times;
}

class Audition {
 public:
  Audition(const PolicyInput& input, const std::vector<Seconds>& times)
      : input_(input), times_(times) {}

  // An order as priorities and as a fixed order.
  void hear(const std::vector<TaskId>& order) {
    const auto places = places_in(order);
    for (const auto readiness : {Readiness::queued, Readiness::complete}) {
      hear([&] { return std::make_unique<ListPolicy>(input_, places, readiness); }, kAnyGain);
    }
    hear([&] { return std::make_unique<OrderedPolicy>(input_, order); }, kGainOfFixedOrder);
  }
  std::unique_ptr<Policy> best() && { return std::move(best_); }

 private:
  template <typename Make>
  void hear(const Make& make, double gain) {
    const Seconds length = rehearse(input_.graph, times_, *make());
    if (best_ && length >= shortest_ * (1.0 - gain)) return;
    shortest_ = length;
    best_ = make();
  }

  const PolicyInput& input_;
  const std::vector<Seconds>& times_;
  Seconds shortest_;  // rehearsal, that of best_
  std::unique_ptr<Policy> best_;
};

}  // namespace

std::unique_ptr<Policy> make_resource_aware(const PolicyInput& input) {
  const auto times = in_whole_parts(contended_times(input));
  const auto in_plan_order = tasks_by_rank(ranks_in_plan_order(input.graph, times));
  const auto by_rank = tasks_by_rank(upward_ranks(input.graph, times));
  std::vector<TaskId> plan(input.graph.size());
  std::iota(plan.begin(), plan.end(), TaskId{0});
  Audition audition(input, times);
  for (const auto& order : {in_plan_order, by_rank, plan}) {
    audition.hear(order);
    audition.hear(justified_order(input.graph, times, order));
  }
  if (input.graph.size() <= kSmallGraph) {
    audition.hear(reference_schedule(input.graph, times, nullptr, kSearchNodes).order);
  }
  return std::move(audition).best();
}

}  // namespace offstage::scheduler
