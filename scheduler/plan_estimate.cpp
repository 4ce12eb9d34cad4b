#include "scheduler/plan_estimate.h"

#include <algorithm>

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
  shorter.workload.global_batch = micro_batches * plan.batch_shares() * plan.strategy.micro_batch;
  return shorter;
}

// Work of what belongs to the second micro-batch alone: what each further one adds.
std::vector<TaskCost> of_second_micro_batch(const TaskGraph& graph, std::vector<TaskCost> costs) {
  for (TaskId task = 0; task < graph.size(); ++task) {
    if (graph.tasks[task].micro_batch != 1) costs[task] = {};
  }
  return costs;
}

Seconds line_through(std::int64_t x0, Seconds y0, std::int64_t x1, Seconds y1, std::int64_t x) {
  const double part = static_cast<double>(x - x0) / static_cast<double>(x1 - x0);
  return y0 + (y1 - y0) * part;
}

}  // namespace

Bound estimated_bound(const Plan& plan, const Profile& profile) {
  const Plan of_two = with_micro_batches(plan, 2);
  const TaskGraph graph = make_step_graph(of_two, 1);
  const auto costs = make_costs(of_two, profile, graph);
  const auto both = resource_work(of_two.machine, graph, costs);
  const auto second = resource_work(of_two.machine, graph, of_second_micro_batch(graph, costs));
  const auto further = static_cast<double>(plan.micro_batches() - 2);
  Bound bound;
  std::size_t busiest = 0;
  for (std::size_t i = 0; i < both.size(); ++i) {
    const Seconds work = both[i] + second[i] * further;
    if (work <= bound.seconds) continue;
    bound.seconds = work;
    busiest = i;
  }
  bound.by = resource_name(plan.machine, graph, busiest);
  return bound;
}

std::vector<Seconds> estimated_steps(const std::vector<const Plan*>& plans,
                                     const Evaluate& evaluate) {
  std::vector<Plan> to_run;
  for (const auto* plan : plans) {
    if (plan->micro_batches() <= kMore) {
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
    if (plan->micro_batches() <= kMore) {
      steps.push_back(first);
    } else {
      steps.push_back(line_through(kFewer, first, kMore, run[next++], plan->micro_batches()));
    }
  }
  return steps;
}

std::int64_t estimated_tasks(const Plan& plan) {
  const std::int64_t micro_batches =
      plan.micro_batches() <= kMore ? plan.micro_batches() : kFewer + kMore;
  // Of a micro-batch: forward, backward and, with activations on the CPU, a copy each way. Of a
  // sub-model: weights twice, gradients, update.
  const std::int64_t of_micro_batch = plan.strategy.activations == ActivationPlace::cpu ? 4 : 2;
  constexpr std::int64_t kOfSubModel = 8;
  const auto submodels = static_cast<std::int64_t>(plan.submodels.size());
  return plan.gpus() * submodels * (micro_batches * of_micro_batch + kOfSubModel);
}

}  // namespace offstage::scheduler
