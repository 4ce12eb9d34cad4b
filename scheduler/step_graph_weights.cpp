#include "scheduler/plan_ledger.h"
#include "scheduler/step_graph_builder.h"

// What brings weights to the GPUs, and activations to the CPU and back.
namespace offstage::scheduler {

void StepGraphBuilder::add_weights(std::size_t k, bool going_back) {
  const auto& submodel = plan_.submodels[k];
  const bool renewed_already = submodel.state == StatePlace::resident_weights && going_back;
  for (std::size_t g = 0; g < gpus_; ++g) {
    if (submodel.state == StatePlace::resident) {
      weights_[g][visit(k, going_back)] = {{}, last_update_[g][k], {}};
    } else if (renewed_already) {
      weights_[g][visit(k, true)] = weights_[g][visit(k, false)];
    } else {
      add_fetch(g, k, going_back);
    }
  }
  if (groups_ > 1) add_all_gather(k, going_back);
}

// A GPU's shard: into its place in the weight slot, or, when the weights are resident, into the
// GPU's copy, which no task reads any more once the sub-model has been updated.
void StepGraphBuilder::add_fetch(std::size_t g, std::size_t k, bool going_back) {
  const auto& submodel = plan_.submodels[k];
  std::vector<TaskId> predecessors;
  std::vector<SlotUse> uses;
  std::optional<SlotId> slot;
  if (submodel.state != StatePlace::resident_weights) {
    slot = rings_[g].weights.acquire(predecessors);
    uses.push_back({*slot, SlotRole::weights, true, false});
  }
  const auto wait_for = [&](std::size_t gpu, std::size_t updated) {
    if (const auto task = last_update_[gpu][updated]) predecessors.push_back(*task);
  };
  wait_for(g, k);
  if (submodel.borrowed > 0) {
    // The borrowed matrix is cut differently here and in sub-model 0.
    for (const std::size_t other : sharers(g)) wait_for(other, 0);
  }
  Task task = make_task(TaskKind::fetch, Payload::weights, g, k);
  task.socket = static_cast<std::uint16_t>(plan_.home_socket(g, k));
  task.bytes = {shard_range(submodel, plan_.shard_of(g)).size() *
                element_bytes(plan_.workload.precision).weight};
  weights_[g][visit(k, going_back)] = {
      slot, graph_.add(task, {{engines_[g].h2d}}, predecessors, uses), {}};
}

// Completes the weights on every GPU from everybody's shard; with a tensor split, each rank's slice
// from its shards in the groups, all ranks at once. Resident shards lie outside the slots, which
// are then taken here.
void StepGraphBuilder::add_all_gather(std::size_t k, bool going_back) {
  const auto& submodel = plan_.submodels[k];
  std::vector<TaskId> predecessors;
  std::vector<SlotUse> uses;
  const bool from_resident =
      submodel.state == StatePlace::resident || submodel.state == StatePlace::resident_weights;
  for (std::size_t g = 0; g < gpus_; ++g) {
    auto& weights = weights_[g][visit(k, going_back)];
    if (weights.ready) predecessors.push_back(*weights.ready);
    if (from_resident) weights.slot = rings_[g].weights.acquire(predecessors);
    uses.push_back({*weights.slot, SlotRole::weights, from_resident, false});
  }
  Task task = make_task(TaskKind::all_gather, Payload::weights, 0, k);
  task.bytes = {submodel.shard_elements * plan_.replicas() *
                element_bytes(plan_.workload.precision).weight};
  const TaskId gather = graph_.add(task, collective_engines(), predecessors, uses);
  for (std::size_t g = 0; g < gpus_; ++g) weights_[g][visit(k, going_back)].ready = gather;
}

void StepGraphBuilder::add_activation_offload(std::size_t gpu, std::size_t boundary,
                                              std::uint32_t micro_batch) {
  auto& source = boundary_[gpu][at(boundary, micro_batch)];
  std::vector<TaskId> predecessors{*source.ready};
  const SlotId host = rings_[gpu].host_activation.acquire(predecessors);
  Task task = make_task(TaskKind::offload, Payload::activations, gpu, boundary);
  task.socket = socket_of(host);
  task.micro_batch = micro_batch;
  task.bytes = plan_.boundary_bytes();
  const TaskId id = graph_.add(task, {{engines_[gpu].d2h}}, predecessors,
                               {{SlotUse{*source.slot, SlotRole::output, false, true},
                                 SlotUse{host, SlotRole::host, true, false}}});
  source.offload = id;
  host_boundary_[gpu][at(boundary, micro_batch)] = {host, id, {}};
}

void StepGraphBuilder::add_activation_fetch(std::size_t gpu, std::size_t boundary,
                                            std::uint32_t micro_batch) {
  const auto& source = host_boundary_[gpu][at(boundary, micro_batch)];
  std::vector<TaskId> predecessors{*source.ready};
  const SlotId slot = rings_[gpu].activation.acquire(predecessors);
  Task task = make_task(TaskKind::fetch, Payload::activations, gpu, boundary);
  task.socket = socket_of(*source.slot);
  task.micro_batch = micro_batch;
  task.bytes = plan_.boundary_bytes();
  const TaskId id = graph_.add(task, {{engines_[gpu].h2d}}, predecessors,
                               {{SlotUse{slot, SlotRole::output, true, false},
                                 SlotUse{*source.slot, SlotRole::host, false, true}}});
  rings_[gpu].host_activation.release(*source.slot, {id});
  boundary_[gpu][at(boundary, micro_batch)] = {slot, id, {}};
}

}  // namespace offstage::scheduler
