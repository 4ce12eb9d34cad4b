#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "platform/machine.h"
#include "scheduler/cost_model.h"
#include "scheduler/ledger.h"
#include "scheduler/profile.h"
#include "scheduler/systems/system_strategy.h"
#include "scheduler/task_graph.h"
#include "workloads/layer_table.h"
#include "workloads/workload.h"

// A published system's training step, planned like our own: what every byte is for, and which task
// waits for which. Both are derived from the knobs, a machine, a workload, and the profile of the
// software (its kernels decide what backward keeps).
//
//   const auto plan = make_system_plan(machine, workload, strategy, profile);
//   if (plan.memory.fits()) {
//     const CostedGraph step = make_system_graph(plan, profile);
//     sim::simulate({plan.machine, step.graph, step.costs, PolicyKind::planned, ahead});
//   }
namespace offstage::scheduler::systems {

// Layers [first, end) of the layer table that one pipeline stage works on.
struct Stage {
  std::size_t first_layer = 0, end_layer = 0;
  std::int64_t parameters = 0;  // of one tensor rank; a tied head on another stage than the
                                // embedding has a copy
};

// GPUs that talk to each other, in rising order, and the route they do it over.
struct GroupRoute {
  std::vector<std::size_t> gpus;
  platform::RouteId route = 0;
};

struct SystemPlan {
  platform::Machine machine;  // its first gpus() GPUs are used
  workloads::Workload workload;
  SystemStrategy strategy;
  workloads::LayerTable table;  // of one tensor rank, at strategy.micro_batch
  std::vector<Stage> stages;    // one without a pipeline
  std::vector<GroupRoute> groups;
  Ledger memory;

  std::int64_t gpus() const { return strategy.data * strategy.tensor * strategy.pipeline; }
  // Micro-batches of a data-parallel rank in one step.
  std::int64_t micro_batches() const {
    return workload.global_batch / (strategy.data * strategy.micro_batch);
  }
  // Tensor ranks are neighbours, then data ranks, then stages (Megatron's order).
  std::size_t gpu(std::int64_t stage, std::int64_t data_rank, std::int64_t tensor_rank) const {
    return static_cast<std::size_t>((stage * strategy.data + data_rank) * strategy.tensor +
                                    tensor_rank);
  }
  // GPUs that compute together, and GPUs that have the same parameters.
  std::vector<std::size_t> tensor_group(std::int64_t stage, std::int64_t data_rank) const;
  std::vector<std::size_t> data_group(std::int64_t stage, std::int64_t tensor_rank) const;
  std::int64_t parameters() const;          // of the whole model
  platform::Flops flops_per_token() const;  // forward and backward, without recomputation
};

// Errors: Error(bad_input) when the batch can't be dealt, the model can't be cut so, or the system
// can't do what is asked.
SystemPlan make_system_plan(const platform::Machine& machine, const workloads::Workload& workload,
                            const SystemStrategy& strategy, const Profile& profile);

// One optimizer step. These systems all wait for their optimizer between two steps, so that one
// step is the steady state.
struct CostedGraph {
  TaskGraph graph;
  std::vector<TaskCost> costs;  // by TaskId
};
CostedGraph make_system_graph(const SystemPlan& plan, const Profile& profile);

}  // namespace offstage::scheduler::systems
