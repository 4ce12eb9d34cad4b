#include "scheduler/plan_estimate.h"

#include <algorithm>
#include <map>

#include "scheduler/cost_model.h"
#include "scheduler/metrics.h"
#include "scheduler/step_graph.h"

namespace offstage::scheduler {
namespace {

using platform::Seconds;

constexpr std::int64_t kFewer = 8, kMore = 16;

// The same plan for a smaller global batch. Its ledger is of no use.
Plan with_micro_batches(const Plan& plan, std::int64_t micro_batches) {
  Plan shorter = plan;
  shorter.strategy.shares.clear();
  shorter.workload.global_batch = micro_batches * plan.batch_shares() * plan.strategy.micro_batch;
  return shorter;
}

// Whether a step is so long that a line through shorter ones stands for it. Shorter steps of uneven
// shares have other proportions.
bool is_long(const Plan& plan) {
  return plan.strategy.shares.empty() && plan.most_micro_batches() > kMore;
}

Seconds line_through(std::int64_t x0, Seconds y0, std::int64_t x1, Seconds y1, std::int64_t x) {
  const double part = static_cast<double>(x - x0) / static_cast<double>(x1 - x0);
  return y0 + (y1 - y0) * part;
}

}  // namespace

std::vector<TaskCost> of_second_micro_batch(const TaskGraph& graph, std::vector<TaskCost> costs,
                                            const std::set<std::size_t>& gpus) {
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Task& work = graph.tasks[task];
    if (work.micro_batch != 1 || !gpus.contains(work.gpu)) costs[task] = {};
  }
  return costs;
}

Bound estimated_bound(const Plan& plan, const Profile& profile) {
  const Plan of_two = with_micro_batches(plan, kMicroBatchesOfSlope);
  const TaskGraph graph = make_step_graph(of_two, 1);
  const auto costs = make_costs(of_two, profile, graph);
  auto work = resource_work(of_two.machine, graph, costs);
  std::map<std::int64_t, std::set<std::size_t>> gpus;  // by their number of micro-batches
  for (std::size_t g = 0; g < plan.machine.gpus.size(); ++g) {
    gpus[plan.micro_batches(g)].insert(g);
  }
  for (const auto& [micro_batches, some] : gpus) {
    const auto further = static_cast<double>(micro_batches - kMicroBatchesOfSlope);
    const auto second =
        resource_work(of_two.machine, graph, of_second_micro_batch(graph, costs, some));
    for (std::size_t i = 0; i < work.size(); ++i) work[i] += second[i] * further;
  }
  Bound bound;
  std::size_t busiest = 0;
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (work[i] <= bound.seconds) continue;
    bound.seconds = work[i];
    busiest = i;
  }
  bound.by = resource_name(plan.machine, graph, busiest);
  return bound;
}

std::vector<Seconds> estimated_steps(const std::vector<const Plan*>& plans,
                                     const Evaluate& evaluate) {
  std::vector<Plan> to_run;
  for (const auto* plan : plans) {
    if (!is_long(*plan)) {
      to_run.push_back(*plan);
    } else {
      to_run.push_back(with_micro_batches(*plan, kFewer));
      to_run.push_back(with_micro_batches(*plan, kMore));
    }
  }
  const auto run = evaluate(to_run);
  std::vector<Seconds> steps;
  std::size_t next = 0;
  for (const auto* plan : plans) {
    const Seconds first = run[next++];
    if (!is_long(*plan)) {
      steps.push_back(first);
    } else {
      steps.push_back(line_through(kFewer, first, kMore, run[next++], plan->most_micro_batches()));
    }
  }
  return steps;
}

std::int64_t estimated_tasks(const Plan& plan) {
  const std::int64_t micro_batches =
      is_long(plan) ? plan.replicas() * (kFewer + kMore) : plan.step_micro_batches();
  // Of a micro-batch: forward, backward and, with activations on the CPU, a copy each way. Of a
  // sub-model: weights twice, gradients, update.
  const std::int64_t of_micro_batch = plan.strategy.activations == ActivationPlace::cpu ? 4 : 2;
  constexpr std::int64_t kOfSubModel = 8;
  const auto submodels = static_cast<std::int64_t>(plan.submodels.size());
  const std::int64_t of_replicas = micro_batches * plan.strategy.tensor_ways;
  return submodels * (of_replicas * of_micro_batch + plan.gpus() * kOfSubModel);
}

}  // namespace offstage::scheduler
