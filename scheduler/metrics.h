#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/cost_model.h"
#include "scheduler/plan.h"
#include "scheduler/task_graph.h"
#include "scheduler/trace.h"

// What a trace says: step time, bound, efficiency, and how busy every engine, link and pool was.
namespace offstage::scheduler {

// The time of a step that no schedule can beat: the busiest resource's work, or the critical path.
struct Bound {
  platform::Seconds seconds;
  std::string by;  // "gpu0.compute", "link pcie-a.up", "critical path"
};
Bound step_bound(const platform::Machine& machine, const TaskGraph& graph,
                 const std::vector<TaskCost>& costs);

// The critical path's part in it: what one more step adds to the longest chain of lone times.
platform::Seconds chain_pace(const platform::Machine& machine, const TaskGraph& graph,
                             const std::vector<TaskCost>& costs);

// Lone time on every engine, then load over capacity of every shared link, of all the graph's steps
// together.
std::vector<platform::Seconds> resource_work(const platform::Machine& machine,
                                             const TaskGraph& graph,
                                             const std::vector<TaskCost>& costs);
// Of the entry `index` of resource_work.
std::string resource_name(const platform::Machine& machine, const TaskGraph& graph,
                          std::size_t index);

struct EngineUse {
  std::string engine;
  platform::Seconds busy;  // per step
  double utilisation = 0.0;
};
struct LinkUse {
  std::string link;
  double bytes = 0.0;        // per step; core-nanoseconds on a link of cores
  double utilisation = 0.0;  // 0 where the link caps each flow by itself: no flows share it
};
struct PoolUse {
  std::string pool;
  platform::Bytes peak, capacity;
};

struct Metrics {
  platform::Seconds step;
  double tokens_per_s = 0.0;
  double mfu = 0.0;  // model FLOPs (no recomputation) per second over the GPUs' peak
  Bound bound;
  double efficiency = 0.0;  // bound / step
  std::vector<EngineUse> engines;
  std::vector<LinkUse> links;
  std::vector<PoolUse> memory;
};
Metrics measure(const Plan& plan, const TaskGraph& graph, const std::vector<TaskCost>& costs,
                const Trace& trace);

// What one step of any graph is for.
struct StepWork {
  std::int64_t tokens = 0;
  platform::Flops flops;          // of the model, without recomputation
  platform::FlopsPerSecond peak;  // of the GPUs that share it; 0: not known
};
// All but `memory`.
Metrics measure_pace(const platform::Machine& machine, const StepWork& work, const TaskGraph& graph,
                     const std::vector<TaskCost>& costs, const Trace& trace);

// Of the first `gpus` GPUs together, for products in that precision; 0 where one is not known.
platform::FlopsPerSecond peak_of(const platform::Machine& machine, std::size_t gpus,
                                 platform::Precision precision);

}  // namespace offstage::scheduler
