#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "scheduler/disturbances.h"
#include "scheduler/policies/contention.h"
#include "scheduler/policies/justification.h"
#include "scheduler/policies/list_policy.h"
#include "scheduler/policies/ordered_policy.h"
#include "scheduler/policies/registry.h"
#include "scheduler/policies/rehearsal.h"
#include "scheduler/policies/upward_rank.h"
#include "scheduler/random_draw.h"
#include "scheduler/reference_schedule.h"

// Ours. Before the run it draws up several orders of the tasks, with the times that copies take
// where links are shared, and rehearses each, as priorities and as a fixed order. Those that do
// about equally well are rehearsed again with tasks that take longer or shorter than expected; the
// run goes by the best.
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

// Orders whose rehearsals are longer than the shortest by no more than this part are rehearsed
// again, the first few of them, this often and with times that spread so much (standard deviation
// over mean). Twice that tolerance made no difference on six plans of results/studies/policies.
constexpr double kAboutAsLong = 0.005;
constexpr std::size_t kHeardAgain = 4;
constexpr std::uint64_t kDraws = 2;
constexpr double kSpread = 0.2;

// Graphs so small are searched for a while; larger ones would not come far.
constexpr std::size_t kSmallGraph = 300;
constexpr std::int64_t kSearchNodes = 500;

// In whole parts of the longest time: sums are exact then, and what is equal stays equal whatever
// the unit or the order of adding up. Without it, rounding errors would choose among equal tasks.
std::vector<Seconds> in_whole_parts(std::vector<Seconds> times) {
  constexpr double kParts = 1 << 24;  // fewer would blur, more would lose digits in sums
  const Seconds longest = times.empty() ? Seconds{} : *std::ranges::max_element(times);
  if (!(longest > Seconds{})) return times;
  for (Seconds& time : times) time = {std::round(time / longest * kParts)};
  return times;
}

std::vector<Seconds> varied(std::vector<Seconds> times, std::uint64_t seed) {
  const auto quantiles = lognormal_quantiles(kSpread);
  for (std::size_t task = 0; task < times.size(); ++task) {
    times[task] = times[task] * quantile_at(quantiles, uniform_draw(seed, task));
  }
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
      hear([this, places, readiness] {
        return std::make_unique<ListPolicy>(input_, places, readiness);
      });
    }
    hear([this, order] { return std::make_unique<OrderedPolicy>(input_, order); });
  }

  std::unique_ptr<Policy> best() && {
    std::ranges::stable_sort(heard_, {}, &Heard::length);
    const Seconds enough = heard_.front().length * (1.0 + kAboutAsLong);
    std::size_t again = 1;
    while (again < std::min(heard_.size(), kHeardAgain) && heard_[again].length <= enough) ++again;
    heard_.resize(again);
    for (std::uint64_t seed = 1; again > 1 && seed <= kDraws; ++seed) {
      const auto times = varied(times_, seed);
      for (Heard& heard : heard_) heard.length += rehearse(input_.graph, times, *heard.make());
    }
    return std::ranges::min_element(heard_, {}, &Heard::length)->make();
  }

 private:
  struct Heard {
    std::function<std::unique_ptr<Policy>()> make;
    Seconds length;  // of its rehearsals together
  };

  void hear(std::function<std::unique_ptr<Policy>()> make) {
    const Seconds length = rehearse(input_.graph, times_, *make());
    heard_.push_back({std::move(make), length});
  }

  const PolicyInput& input_;
  const std::vector<Seconds>& times_;
  std::vector<Heard> heard_;
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
