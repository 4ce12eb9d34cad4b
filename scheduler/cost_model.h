#pragma once

#include <optional>
#include <vector>

#include "platform/machine.h"
#include "scheduler/plan.h"
#include "scheduler/profile.h"
#include "scheduler/task_graph.h"

// Turns a task's work into what a simulator needs: an exclusive time, a flow over a route, or both
// in this order. The bound adds up the same numbers, so simulation and bound cannot disagree on
// costs.
namespace offstage::scheduler {

struct TaskCost {
  platform::Seconds exclusive;             // the engines are held, no link is loaded
  std::optional<platform::RouteId> route;  // then, after its latency, `amount` flows over it
  double amount = 0.0;                     // bytes, or core-nanoseconds on a route of cores
  platform::Bytes transient;               // working memory a compute task takes on its GPU
};

// What a flow alone on a route gets: the capacity of its narrowest link, a link named twice
// counting half. Core-nanoseconds a second on a route of cores.
platform::BytesPerSecond route_rate(const platform::Machine& machine, platform::RouteId route);

// The time of a task alone on the machine.
platform::Seconds lone_time(const platform::Machine& machine, const TaskCost& cost);

// Costs of every task of a step graph, by TaskId.
// Errors: Error(bad_input) when the machine lacks a table that the workload needs (its precision).
std::vector<TaskCost> make_costs(const Plan& plan, const Profile& profile, const TaskGraph& graph);

// What a forward or backward task of a sub-model computes, in order; backward recomputes first.
std::vector<workloads::Operation> compute_operations(const Plan& plan, std::size_t submodel,
                                                     TaskKind kind);

// Time of one layer's pass on a GPU model, for inspection and calibration: the sum over its
// operations of the roofline over the machine's tables, never below kernels x launch interval (or
// plus it, where launches do not overlap).
platform::Seconds pass_time(const platform::GpuModel& gpu, const Profile& profile,
                            const std::vector<workloads::Operation>& operations,
                            platform::Precision precision);

}  // namespace offstage::scheduler
