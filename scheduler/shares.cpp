#include "scheduler/shares.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "scheduler/cost_model.h"
#include "scheduler/metrics.h"
#include "scheduler/plan_estimate.h"
#include "scheduler/step_graph.h"

namespace offstage::scheduler {
namespace {

using platform::Machine;
using platform::Seconds;
using Shares = std::vector<std::int64_t>;

// More moves of one micro-batch than this from one plan are not worth their simulations.
constexpr std::size_t kReceivers = 2;

// Rates of the links between a GPU and its socket's memory, down then up.
std::vector<double> rates_of(const Machine& machine, const platform::Gpu& gpu) {
  std::vector<double> rates;
  for (const auto route : {gpu.h2d[gpu.socket], gpu.d2h[gpu.socket]}) {
    for (const auto link : machine.routes[route].links) {
      rates.push_back(machine.links[link].capacity.value.value);
    }
  }
  return rates;
}

std::int64_t sum_of(const Shares& shares) {
  return std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
}

// What every engine and link has to do in a step, as the shares make it.
class Pace {
 public:
  Pace(const PlanningInput& input, const Strategy& strategy)
      : gpus_(input.machine.gpus.size()), slopes_(gpus_) {
    workloads::Workload workload = input.workload;
    workload.global_batch =
        kMicroBatchesOfSlope * static_cast<std::int64_t>(gpus_) * strategy.micro_batch;
    Strategy even = strategy;
    even.shares.clear();
    const Plan plan = make_plan(input.machine, workload, even);
    const TaskGraph graph = make_step_graph(plan, 1);
    const auto costs = make_costs(plan, input.profile, graph);
    base_ = resource_work(plan.machine, graph, costs);
    for (std::size_t g = 0; g < gpus_; ++g) {
      slopes_[g] = resource_work(plan.machine, graph, of_second_micro_batch(graph, costs, {g}));
    }
  }

  // The work of the busiest engine or link that this GPU's micro-batches use.
  Seconds busiest(std::size_t gpu, const Shares& shares) const {
    Seconds most;
    for (std::size_t i = 0; i < base_.size(); ++i) {
      if (!(slopes_[gpu][i].value > 0.0)) continue;
      Seconds work = base_[i];
      for (std::size_t g = 0; g < gpus_; ++g) {
        work += slopes_[g][i] * static_cast<double>(shares[g] - kMicroBatchesOfSlope);
      }
      most = std::max(most, work);
    }
    return most;
  }

  // The GPUs in the order in which they would end with one micro-batch more.
  std::vector<std::size_t> by_next(const Shares& shares) const {
    std::vector<std::pair<double, std::size_t>> ends;
    for (std::size_t g = 0; g < gpus_; ++g) {
      Shares more = shares;
      ++more[g];
      ends.emplace_back(busiest(g, more).value, g);
    }
    std::ranges::stable_sort(
        ends, {}, [&](const auto& end) { return std::pair(end.first, shares[end.second]); });
    std::vector<std::size_t> order;
    for (const auto& [end, gpu] : ends) order.push_back(gpu);
    return order;
  }

  Shares deal(std::int64_t micro_batches) const {
    Shares shares(gpus_, 1);
    for (auto left = micro_batches - static_cast<std::int64_t>(gpus_); left > 0; --left) {
      ++shares[by_next(shares).front()];
    }
    return shares;
  }

 private:
  std::size_t gpus_;
  std::vector<Seconds> base_;                 // by resource, with two micro-batches on each GPU
  std::vector<std::vector<Seconds>> slopes_;  // by GPU, resource: of one micro-batch more
};

Shares without_even(Shares shares) {
  const bool even = std::ranges::all_of(shares, [&](auto share) { return share == shares[0]; });
  return even ? Shares{} : shares;
}

}  // namespace

bool shares_may_differ(const PlanningInput& input, std::int64_t ways) {
  const auto& fixed = input.request.shares;
  return ways == 1 && input.machine.hosts == 1 && (!fixed || !fixed->empty());
}

bool gpus_alike(const Machine& machine) {
  const auto& first = machine.gpus.front();
  const auto rates = rates_of(machine, first);
  return std::ranges::all_of(machine.gpus, [&](const platform::Gpu& gpu) {
    return gpu.model == first.model && gpu.speed == first.speed && rates_of(machine, gpu) == rates;
  });
}

Shares nearly_even(std::int64_t micro_batches, std::int64_t gpus) {
  const std::int64_t rest = micro_batches % gpus;
  if (rest == 0) return {};
  Shares shares(static_cast<std::size_t>(gpus), micro_batches / gpus);
  for (std::int64_t g = 0; g < rest; ++g) ++shares[static_cast<std::size_t>(g)];
  return shares;
}

Shares plain_shares(const PlanningInput& input, const Strategy& strategy) {
  if (!shares_may_differ(input, strategy.tensor_ways)) return {};
  if (input.request.shares) return *input.request.shares;
  return nearly_even(input.workload.global_batch / strategy.micro_batch,
                     static_cast<std::int64_t>(input.machine.gpus.size()));
}

Shares best_shares(const PlanningInput& input, const Strategy& strategy) {
  Shares plain = plain_shares(input, strategy);
  const bool open = shares_may_differ(input, strategy.tensor_ways) && !input.request.shares;
  const auto gpus = static_cast<std::int64_t>(input.machine.gpus.size());
  const std::int64_t micro_batches = input.workload.global_batch / strategy.micro_batch;
  if (!open || gpus_alike(input.machine) || micro_batches <= gpus) return plain;
  return without_even(Pace(input, strategy).deal(micro_batches));
}

std::vector<Shares> share_moves(const PlanningInput& input, const Strategy& strategy) {
  if (!shares_may_differ(input, strategy.tensor_ways) || input.request.shares) return {};
  if (strategy.shares.empty() && gpus_alike(input.machine)) return {};
  const auto gpus = static_cast<std::int64_t>(input.machine.gpus.size());
  const std::int64_t micro_batches = input.workload.global_batch / strategy.micro_batch;
  const Pace pace(input, strategy);
  Shares now = strategy.shares;
  if (now.empty()) now.assign(static_cast<std::size_t>(gpus), micro_batches / gpus);
  std::vector<Shares> moves{nearly_even(micro_batches, gpus), without_even(pace.deal(sum_of(now)))};
  std::size_t last = now.size();
  for (std::size_t g = 0; g < now.size(); ++g) {
    if (now[g] == 1) continue;
    if (last == now.size() || pace.busiest(last, now) < pace.busiest(g, now)) last = g;
  }
  if (last == now.size()) return moves;
  std::size_t receivers = 0;
  for (const std::size_t g : pace.by_next(now)) {
    if (g == last || ++receivers > kReceivers) continue;
    Shares moved = now;
    --moved[last];
    ++moved[g];
    moves.push_back(without_even(std::move(moved)));
  }
  std::erase(moves, strategy.shares);
  return moves;
}

}  // namespace offstage::scheduler
