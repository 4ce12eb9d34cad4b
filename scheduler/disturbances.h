#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "platform/document.h"
#include "platform/machine.h"
#include "scheduler/cost_model.h"
#include "scheduler/task_graph.h"

// What goes otherwise than planned: tasks that take longer or shorter than they should, a GPU that
// slows down or dies, a link that degrades. The plan and the policy do not know of it; the
// simulated machine does. A GPU that dies is `train`'s to bear too.
//
//   disturbances:
//     seed: 7
//     jitter: 0.2  # of every task; by kind: {fetch: 0.3, forward: 0.05}; or {file: FILE} with such
//                  # a map, as `offstage jitter` makes of a trace
//     slow_gpus: [{gpu: gpu3, speed: 0.7, from_step: 2}]
//     links: [{link: socket0.dram, factor: 0.5, from_step: 2, to_step: 4}]
//     lost_gpu: {gpu: gpu5, step: 40}
namespace offstage::scheduler {

// Steps are counted from 1, as people do; both ends belong to it.
struct StepSpan {
  std::int64_t from = 1;
  std::int64_t to = std::numeric_limits<std::int64_t>::max();
  bool contains(std::int64_t step) const { return from <= step && step <= to; }
};

// How the times of one kind of task spread: each task's work is multiplied by a number drawn from
// the distribution whose quantiles these are, from the smallest value to the largest, evenly spaced
// and joined by straight lines. Empty: no spread.
using Quantiles = std::vector<double>;

// Of a log-normal distribution with mean 1.
// Units: variation: standard deviation over mean, as 0.2.
Quantiles lognormal_quantiles(double variation);

struct SlowGpu {
  std::size_t gpu = 0;
  double speed = 1.0;  // of its compute, relative to what the plan reckons with
  StepSpan steps;
};

struct ChangedLink {
  platform::LinkId link = 0;
  double factor = 1.0;  // of its capacity
  StepSpan steps;
};

// A GPU that dies: in this step it fails, and is gone.
struct LostGpu {
  std::size_t gpu = 0;
  std::int64_t step = 1;
};

struct Disturbances {
  std::uint64_t seed = 0;
  std::array<Quantiles, kTaskKinds> jitter;  // by TaskKind
  std::vector<SlowGpu> slow_gpus;
  std::vector<ChangedLink> links;
  std::optional<LostGpu> lost_gpu;

  // Whether there is one that no real machine can be asked for.
  bool only_simulated() const;
};

// Errors: Error(bad_input) with place, what is allowed, the nearest match.
Disturbances read_disturbances(const platform::Node& node, const platform::Machine& machine);

// What the tasks cost in truth. A task's draw depends on the seed and its id alone: every policy
// meets the same tasks.
std::vector<TaskCost> disturbed_costs(const std::vector<TaskCost>& costs, const TaskGraph& graph,
                                      const Disturbances& disturbances);

// Capacity of every link, by LinkId, relative to the machine's, in one step.
// Units: step: from 0, within the graph.
std::vector<double> link_factors(const platform::Machine& machine, const Disturbances& disturbances,
                                 std::uint32_t step);

}  // namespace offstage::scheduler
