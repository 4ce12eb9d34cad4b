#include <utility>

#include "scheduler/plan_ledger.h"
#include "scheduler/step_graph_builder.h"

// What becomes of a sub-model's gradients: summed over the GPUs, sent to the CPU, summed over the
// hosts and applied there, or applied on the GPU where its state is.
namespace offstage::scheduler {

void StepGraphBuilder::add_gradient_path(std::size_t k) {
  if (groups_ > 1) add_reduce_scatter(k);
  if (plan_.submodels[k].state == StatePlace::resident) {
    PendingUpdate update{k, std::exchange(gradients_, {})};
    // With a second gradient slot backward goes on while this one is summed.
    if (groups_ > 1 && plan_.strategy.gradient_slots > 1) {
      pending_ = std::move(update);
    } else {
      add_gpu_updates(update);
    }
    return;
  }
  for (std::size_t g = 0; g < gpus_; ++g) {
    add_gradient_offload(g, k);
    if (network_) add_host_reduction(g, k);
    if (clips_) add_norm(g, k);
  }
  if (!clips_ && !is_tied_head(k)) add_updates(k);
}

void StepGraphBuilder::add_reduce_scatter(std::size_t k) {
  std::vector<TaskId> predecessors;
  std::vector<SlotUse> uses;
  for (const auto& gradients : gradients_) {
    predecessors.push_back(*gradients.ready);
    uses.push_back({*gradients.slot, SlotRole::gradients, false, false});
  }
  Task task = make_task(TaskKind::reduce_scatter, Payload::gradients, 0, k);
  task.bytes = {plan_.submodels[k].shard_elements * plan_.replicas() *
                element_bytes(plan_.workload.precision).sent_gradient};
  const TaskId reduce = graph_.add(task, collective_engines(), predecessors, uses);
  for (auto& gradients : gradients_) gradients.ready = reduce;
}

void StepGraphBuilder::add_gradient_offload(std::size_t g, std::size_t k) {
  auto& gradients = gradients_[g];
  std::vector<TaskId> predecessors{*gradients.ready};
  auto& host = host_gradients_[g][k];
  if (is_tied_head(k)) {
    // One slot for good. Last step's readers: the update of the embedding by every GPU that shares
    // the buffer, and this GPU's of the head.
    host.slot = rings_[g].tied_gradients;
    for (const std::size_t other : sharers(g)) {
      if (last_update_[other][0]) predecessors.push_back(*last_update_[other][0]);
    }
    if (const auto update = last_update_[g][k]) predecessors.push_back(*update);
  } else {
    host.slot = rings_[g].host_gradients.acquire(predecessors);
  }
  Task task = make_task(TaskKind::offload, Payload::gradients, g, k);
  task.bytes = {shard_range(plan_.submodels[k], plan_.shard_of(g)).size() *
                element_bytes(plan_.workload.precision).sent_gradient};
  const TaskId id = graph_.add(task, {{engines_[g].d2h}}, predecessors,
                               {{SlotUse{*gradients.slot, SlotRole::gradients, false, true},
                                 SlotUse{*host.slot, SlotRole::host, true, false}}});
  rings_[g].gradients.release(*gradients.slot, {id});
  host.ready = id;
}

// Sums a shard over the hosts, in its slot. One engine does it for all GPUs of a host, so that all
// hosts come to the same shard at the same time.
void StepGraphBuilder::add_host_reduction(std::size_t g, std::size_t k) {
  auto& host = host_gradients_[g][k];
  Task task = make_task(TaskKind::all_reduce, Payload::gradients, g, k);
  task.bytes = {shard_range(plan_.submodels[k], plan_.shard_of(g)).size() *
                element_bytes(plan_.workload.precision).sent_gradient};
  host.ready = graph_.add(task, {{*network_}}, {{*host.ready}},
                          {{SlotUse{*host.slot, SlotRole::host, false, false}}});
}

// The sum of squares of a shard's gradients, sub-model after sub-model on each GPU's side: who has
// seen the last one of every GPU has seen all.
void StepGraphBuilder::add_norm(std::size_t g, std::size_t k) {
  const auto& own = host_gradients_[g][k];
  std::vector<TaskId> predecessors{*own.ready};
  std::vector<SlotUse> uses{{*own.slot, SlotRole::host, false, false}};
  if (last_norm_[g]) predecessors.push_back(*last_norm_[g]);
  if (tied_ && k == 0) {
    for (const std::size_t other : sharers(g)) {
      predecessors.push_back(*host_gradients_[other][last_].ready);
      uses.push_back({*host_gradients_[other][last_].slot, SlotRole::host, false, false});
    }
  }
  Task task = make_task(TaskKind::norm, Payload::gradients, g, k);
  task.elements = owned_range(plan_.submodels[k], plan_.shard_of(g)).size();
  last_norm_[g] = graph_.add(task, {{optimizers_[task.socket]}}, predecessors, uses);
}

void StepGraphBuilder::add_gpu_updates(const PendingUpdate& pending) {
  for (std::size_t g = 0; g < gpus_; ++g) {
    const auto& gradients = pending.gradients[g];
    Task task = make_task(TaskKind::update, Payload::none, g, pending.submodel);
    task.elements = owned_range(plan_.submodels[pending.submodel], plan_.shard_of(g)).size();
    const TaskId id = graph_.add(task, {{engines_[g].compute}}, {{*gradients.ready}},
                                 {{SlotUse{*gradients.slot, SlotRole::gradients, false, true}}});
    rings_[g].gradients.release(*gradients.slot, {id});
    last_update_[g][pending.submodel] = id;
  }
}

void StepGraphBuilder::add_updates(std::size_t k) {
  for (std::size_t g = 0; g < gpus_; ++g) {
    if (plan_.submodels[k].state == StatePlace::nvme) {
      const Occupied state = add_nvme_read(g, k);
      add_update(g, k, state);
      add_nvme_write(g, k, state);
    } else {
      add_update(g, k, {});
    }
  }
}

// The slots of an update: its own shard's gradients first; for the embedding of a model with a tied
// head, then the head's gradients of every GPU; last, state from NVMe.
void StepGraphBuilder::add_update(std::size_t g, std::size_t k, const Occupied& nvme_state) {
  const auto& own = host_gradients_[g][k];
  std::vector<TaskId> predecessors{*own.ready};
  std::vector<SlotUse> uses{{*own.slot, SlotRole::host, false, true}};
  if (tied_ && k == 0) {
    for (const std::size_t other : sharers(g)) {
      const auto& head = host_gradients_[other][last_];
      predecessors.push_back(*head.ready);
      uses.push_back({*head.slot, SlotRole::host, false, true});
    }
  }
  if (clips_) {
    for (const auto& norm : last_norm_) predecessors.push_back(*norm);
  }
  if (nvme_state.ready) {
    predecessors.push_back(*nvme_state.ready);
    uses.push_back({*nvme_state.slot, SlotRole::host, false, false});
  }
  Task task = make_task(TaskKind::update, Payload::none, g, k);
  task.elements = owned_range(plan_.submodels[k], plan_.shard_of(g)).size();
  // Where the state is: 12 bytes of a parameter are there and go back, its gradient's 2 or 4 may
  // come from another socket.
  task.socket = static_cast<std::uint16_t>(plan_.home_socket(g, k));
  const TaskId id = graph_.add(task, {{optimizers_[task.socket]}}, predecessors, uses);
  if (!is_tied_head(k)) rings_[g].host_gradients.release(*own.slot, {id});
  last_update_[g][k] = id;
}

StepGraphBuilder::Occupied StepGraphBuilder::add_nvme_read(std::size_t g, std::size_t k) {
  std::vector<TaskId> predecessors;
  const SlotId slot = rings_[g].host_nvme.acquire(predecessors);
  if (last_write_[g][k]) predecessors.push_back(*last_write_[g][k]);
  Task task = make_task(TaskKind::read, Payload::none, g, k);
  task.bytes = {owned_range(plan_.submodels[k], plan_.shard_of(g)).size() * nvme_bytes(plan_)};
  const TaskId id = graph_.add(task, {{*engines_[g].nvme_read}}, predecessors,
                               {{SlotUse{slot, SlotRole::host, true, false}}});
  return {slot, id, {}};
}

void StepGraphBuilder::add_nvme_write(std::size_t g, std::size_t k, const Occupied& state) {
  Task task = make_task(TaskKind::write, Payload::none, g, k);
  task.bytes = {owned_range(plan_.submodels[k], plan_.shard_of(g)).size() * nvme_bytes(plan_)};
  const TaskId id = graph_.add(task, {{*engines_[g].nvme_write}}, {{*last_update_[g][k]}},
                               {{SlotUse{*state.slot, SlotRole::host, false, true}}});
  rings_[g].host_nvme.release(*state.slot, {id});
  last_write_[g][k] = id;
}

// What had to wait for the end of the backward pass. With exact clipping that is every update; they
// then come in the order in which the next step's forward asks for the weights.
void StepGraphBuilder::add_last_updates() {
  if (pending_) add_gpu_updates(std::exchange(pending_, std::nullopt).value());
  if (clips_) {
    for (std::size_t k = 0; k < last_; ++k) add_updates(k);
  }
  if (clips_ || tied_) add_updates(last_);
  for (auto& norm : last_norm_) norm.reset();
}

}  // namespace offstage::scheduler
