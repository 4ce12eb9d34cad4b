#include "scheduler/metrics.h"

#include <algorithm>
#include <cmath>

#include "platform/error.h"
#include "scheduler/memory_use.h"
#include "scheduler/working_memory.h"

namespace offstage::scheduler {

using platform::Machine;
using platform::Seconds;

namespace {

Seconds overlap(const Interval& interval, const SteadyWindow& window) {
  const Seconds begin = std::max(interval.start, window.begin);
  const Seconds end = std::min(interval.end, window.end);
  return end > begin ? end - begin : Seconds{};
}

// All steps' amount over every link, a link twice in a route carrying it twice.
std::vector<double> link_loads(const Machine& machine, const std::vector<TaskCost>& costs) {
  std::vector<double> loads(machine.links.size());
  for (const TaskCost& cost : costs) {
    if (!cost.route) continue;
    for (const auto link : machine.routes[*cost.route].links) loads[link] += cost.amount;
  }
  return loads;
}

// The longest chain of lone times through the tasks of steps 0 ... last.
Seconds critical_path(const TaskGraph& graph, const std::vector<Seconds>& lone_times,
                      std::uint32_t last) {
  std::vector<Seconds> end(graph.size());
  Seconds longest;
  for (TaskId task = 0; task < graph.size(); ++task) {
    if (graph.tasks[task].step > last) continue;
    for (const TaskId predecessor : graph.predecessors(task)) {
      end[task] = std::max(end[task], end[predecessor]);
    }
    end[task] += lone_times[task];
    longest = std::max(longest, end[task]);
  }
  return longest;
}

void take_longer(Bound& bound, Seconds seconds, const std::string& by) {
  if (seconds > bound.seconds) bound = {seconds, by};
}

std::vector<EngineUse> engine_use(const TaskGraph& graph, const Trace& trace) {
  const SteadyWindow window = steady_window(trace.step_ends(graph));
  const double per_step = 1.0 / static_cast<double>(window.steps);
  std::vector<EngineUse> engines;
  for (const Engine& engine : graph.engines) engines.push_back({engine.name, {}, 0.0});
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Seconds busy = overlap(trace.tasks[task], window) * per_step;
    for (const EngineId engine : graph.task_engines(task)) engines[engine].busy += busy;
  }
  const Seconds length = (window.end - window.begin) * per_step;
  for (EngineUse& engine : engines) {
    engine.utilisation = length.value > 0.0 ? engine.busy / length : 0.0;
  }
  return engines;
}

}  // namespace

std::vector<Seconds> resource_work(const Machine& machine, const TaskGraph& graph,
                                   const std::vector<TaskCost>& costs) {
  std::vector<Seconds> work(graph.engines.size());
  for (TaskId task = 0; task < graph.size(); ++task) {
    const Seconds alone = lone_time(machine, costs[task]);
    for (const EngineId engine : graph.task_engines(task)) work[engine] += alone;
  }
  const auto loads = link_loads(machine, costs);
  for (std::size_t link = 0; link < loads.size(); ++link) {
    // What caps each flow by itself is no resource that flows could use up together.
    const bool shared = !machine.links[link].caps_each_flow;
    work.push_back({shared ? loads[link] / machine.links[link].capacity.value.value : 0.0});
  }
  return work;
}

std::string resource_name(const Machine& machine, const TaskGraph& graph, std::size_t index) {
  const std::size_t engines = graph.engines.size();
  return index < engines ? graph.engines[index].name
                         : "link " + machine.links[index - engines].name;
}

Seconds chain_pace(const Machine& machine, const TaskGraph& graph,
                   const std::vector<TaskCost>& costs) {
  // Steps overlap: what one more step adds to the longest chain is the pace no schedule beats.
  std::vector<Seconds> lone_times;
  lone_times.reserve(costs.size());
  for (const TaskCost& cost : costs) lone_times.push_back(lone_time(machine, cost));
  const Seconds first = critical_path(graph, lone_times, 0);
  if (graph.steps == 1) return first;
  const Seconds all = critical_path(graph, lone_times, graph.steps - 1);
  return (all - first) * (1.0 / static_cast<double>(graph.steps - 1));
}

Bound step_bound(const Machine& machine, const TaskGraph& graph,
                 const std::vector<TaskCost>& costs) {
  Bound bound;
  const auto work = resource_work(machine, graph, costs);
  const double per_step = 1.0 / static_cast<double>(graph.steps);
  for (std::size_t i = 0; i < work.size(); ++i) {
    take_longer(bound, work[i] * per_step, resource_name(machine, graph, i));
  }
  take_longer(bound, chain_pace(machine, graph, costs), "critical path");
  return bound;
}

platform::FlopsPerSecond peak_of(const Machine& machine, std::size_t gpus,
                                 platform::Precision precision) {
  double sum = 0.0;
  for (std::size_t g = 0; g < gpus; ++g) {
    const auto& model = machine.gpu_models[machine.gpus[g].model];
    const double peak = precision == platform::Precision::bf16 ? model.peak_bf16.value.value
                                                               : model.peak_f32.value.value;
    if (!(peak > 0.0)) return {};
    // A card whose compute is asked to be faster than its model's has another peak; a slow one is
    // still held against what its model could do.
    sum += peak * std::max(1.0, machine.gpus[g].speed);
  }
  return {sum};
}

Metrics measure_pace(const Machine& machine, const StepWork& work, const TaskGraph& graph,
                     const std::vector<TaskCost>& costs, const Trace& trace) {
  Metrics metrics;
  metrics.step = steady_step(graph, trace);
  const double step_s = metrics.step.value;
  OFFSTAGE_CHECK(step_s > 0.0, "a trace whose steps take no time");
  metrics.tokens_per_s = static_cast<double>(work.tokens) / step_s;
  if (work.peak.value > 0.0) metrics.mfu = work.flops.value / (work.peak.value * step_s);
  metrics.bound = step_bound(machine, graph, costs);
  metrics.efficiency = metrics.bound.seconds / metrics.step;
  metrics.engines = engine_use(graph, trace);
  const auto loads = link_loads(machine, costs);
  for (std::size_t link = 0; link < loads.size(); ++link) {
    const auto& info = machine.links[link];
    const double per_step = loads[link] / static_cast<double>(graph.steps);
    const double most = info.capacity.value.value * step_s;
    metrics.links.push_back({info.name, per_step, info.caps_each_flow ? 0.0 : per_step / most});
  }
  return metrics;
}

Metrics measure(const Plan& plan, const TaskGraph& graph, const std::vector<TaskCost>& costs,
                const Trace& trace) {
  const std::int64_t tokens = plan.workload.tokens_per_step();
  const auto precision = compute_precision(plan.machine, plan.workload);
  const auto peak = peak_of(plan.machine, plan.machine.gpus.size(), precision);
  Metrics metrics = measure_pace(plan.machine,
                                 {.tokens = tokens,
                                  .flops = plan.flops_per_token() * static_cast<double>(tokens),
                                  .peak = {peak.value * static_cast<double>(plan.hosts())}},
                                 graph, costs, trace);
  const auto peaks = pool_peaks(plan, graph, costs, trace);
  for (std::size_t pool = 0; pool < peaks.size(); ++pool) {
    const auto& info = plan.machine.pools[pool];
    metrics.memory.push_back({info.name, peaks[pool], info.capacity.value});
  }
  return metrics;
}

}  // namespace offstage::scheduler
