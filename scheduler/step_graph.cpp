#include "scheduler/step_graph.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "platform/error.h"
#include "scheduler/plan_ledger.h"
#include "scheduler/step_graph_builder.h"
#include "scheduler/working_memory.h"

namespace offstage::scheduler {

StepGraphBuilder::StepGraphBuilder(const Plan& plan)
    : plan_(plan),
      gpus_(plan.machine.gpus.size()),
      groups_(static_cast<std::size_t>(plan.replicas())),
      ways_(static_cast<std::size_t>(plan.strategy.tensor_ways)),
      last_(plan.submodels.size() - 1),
      most_micro_batches_(static_cast<std::uint32_t>(plan.most_micro_batches())),
      on_cpu_(plan.strategy.activations == ActivationPlace::cpu),
      tied_(plan.submodels.back().borrowed > 0),
      clips_(plan.strategy.clipping == Clipping::exact) {
  for (std::size_t group = 0; group < groups_; ++group) {
    micro_batches_.push_back(static_cast<std::uint32_t>(plan.micro_batches(group * ways_)));
  }
  make_engines();
  make_slots();
  const std::size_t submodels = last_ + 1;
  weights_.assign(gpus_, std::vector<Occupied>(2 * submodels));
  host_gradients_.assign(gpus_, std::vector<Occupied>(submodels));
  last_update_.assign(gpus_, std::vector<std::optional<TaskId>>(submodels));
  last_write_ = last_update_;
  last_norm_.resize(gpus_);
  boundary_.assign(gpus_, std::vector<Occupied>((submodels + 1) * most_micro_batches_));
  host_boundary_ = boundary_;
}

TaskGraph StepGraphBuilder::build(std::uint32_t steps) {
  graph_.steps = steps;
  for (step_ = 0; step_ < steps; ++step_) add_step();
  graph_.finish();
  return std::move(graph_);
}

EngineId StepGraphBuilder::add_engine(const std::string& name, EngineKind kind,
                                      std::size_t device) {
  graph_.engines.push_back({name, kind, static_cast<std::uint16_t>(device)});
  return static_cast<EngineId>(graph_.engines.size() - 1);
}

void StepGraphBuilder::make_engines() {
  const auto& machine = plan_.machine;
  for (std::size_t s = 0; s < machine.sockets.size(); ++s) {
    optimizers_.push_back(
        add_engine(machine.sockets[s].name + ".optimizer", EngineKind::optimizer, s));
  }
  std::vector<std::pair<EngineId, EngineId>> drives;
  if (plan_.strategy.nvme_state > 0) {
    for (std::size_t d = 0; d < machine.drives.size(); ++d) {
      const auto& name = machine.drives[d].name;
      drives.emplace_back(add_engine(name + ".read", EngineKind::nvme_read, d),
                          add_engine(name + ".write", EngineKind::nvme_write, d));
    }
  }
  for (std::size_t g = 0; g < gpus_; ++g) {
    const auto& gpu = machine.gpus[g];
    GpuEngines engines{add_engine(gpu.name + ".compute", EngineKind::compute, g),
                       add_engine(gpu.name + ".h2d", EngineKind::h2d, g),
                       add_engine(gpu.name + ".d2h", EngineKind::d2h, g),
                       add_engine(gpu.name + ".collective", EngineKind::collective, g),
                       {},
                       {}};
    if (!drives.empty()) {
      const auto [read, write] = drives[drive_of(machine, g)];
      engines.nvme_read = read;
      engines.nvme_write = write;
    }
    engines_.push_back(engines);
  }
  if (plan_.hosts() > 1) network_ = add_engine("network", EngineKind::network, 0);
}

void StepGraphBuilder::make_slots() {
  for (std::size_t g = 0; g < gpus_; ++g) {
    const auto counts = slot_counts(plan_, g);
    const auto add = [&](SlotKind kind, std::uint32_t index) {
      graph_.slots.push_back({kind, slot_pool(plan_, g, kind, index), static_cast<std::uint16_t>(g),
                              index, slot_bytes(plan_, kind, index)});
      return static_cast<SlotId>(graph_.slots.size() - 1);
    };
    const auto fill = [&](SlotRing& ring, SlotKind kind, std::uint32_t count) {
      for (std::uint32_t i = 0; i < count; ++i) ring.add(add(kind, i));
    };
    auto& rings = rings_.emplace_back();
    fill(rings.weights, SlotKind::weights, counts.weights);
    fill(rings.gradients, SlotKind::gradients, counts.gradients);
    fill(rings.activation, SlotKind::activation, counts.activation);
    const std::uint32_t ring = counts.host_gradients - (counts.tied_gradients ? 1 : 0);
    fill(rings.host_gradients, SlotKind::host_gradients, ring);
    if (counts.tied_gradients) rings.tied_gradients = add(SlotKind::host_gradients, ring);
    fill(rings.host_activation, SlotKind::host_activation, counts.host_activation);
    fill(rings.host_nvme, SlotKind::host_nvme, counts.host_nvme);
    make_kept_slots(g);
  }
}

// One for every micro-batch of every sub-model that keeps: all of them are full at the turn.
void StepGraphBuilder::make_kept_slots(std::size_t gpu) {
  auto& kept = kept_slots_.emplace_back(plan_.submodels.size() * most_micro_batches_);
  std::uint32_t index = 0;
  for (std::size_t k = 0; k < plan_.submodels.size(); ++k) {
    const auto& submodel = plan_.submodels[k];
    if (!submodel.keeps_activations) continue;
    const auto bytes =
        compute_memory(plan_.table, submodel.first_layer, submodel.end_layer, true).kept;
    for (std::uint32_t m = 0; m < micro_batches_of(gpu); ++m) {
      kept[at(k, m)] = static_cast<SlotId>(graph_.slots.size());
      graph_.slots.push_back({SlotKind::kept, slot_pool(plan_, gpu, SlotKind::kept, index),
                              static_cast<std::uint16_t>(gpu), index, bytes});
      ++index;
    }
  }
}

Task StepGraphBuilder::make_task(TaskKind kind, Payload payload, std::size_t gpu,
                                 std::size_t submodel) const {
  Task task;
  task.kind = kind;
  task.payload = payload;
  task.gpu = static_cast<std::uint16_t>(gpu);
  task.submodel = static_cast<std::uint16_t>(submodel);
  task.socket = static_cast<std::uint16_t>(plan_.machine.gpus[gpu].socket);
  task.step = step_;
  return task;
}

std::uint16_t StepGraphBuilder::socket_of(SlotId slot) const {
  const auto& sockets = plan_.machine.sockets;
  const auto found = std::ranges::find(sockets, graph_.slots[slot].pool, &platform::Socket::pool);
  return static_cast<std::uint16_t>(found - sockets.begin());
}

std::vector<EngineId> StepGraphBuilder::collective_engines() const {
  std::vector<EngineId> engines;
  for (const auto& gpu : engines_) engines.push_back(gpu.collective);
  return engines;
}

std::vector<EngineId> StepGraphBuilder::compute_engines(std::size_t group) const {
  std::vector<EngineId> engines;
  for (const std::size_t g : members(group)) engines.push_back(engines_[g].compute);
  return engines;
}

std::vector<std::size_t> StepGraphBuilder::members(std::size_t group) const {
  std::vector<std::size_t> gpus(ways_);
  std::iota(gpus.begin(), gpus.end(), group * ways_);
  return gpus;
}

std::vector<std::size_t> StepGraphBuilder::sharers(std::size_t gpu) const {
  std::vector<std::size_t> gpus;
  for (std::size_t g = gpu % ways_; g < gpus_; g += ways_) gpus.push_back(g);
  return gpus;
}

bool StepGraphBuilder::input_stays(std::size_t submodel) const {
  return !on_cpu_ || submodel == last_ || plan_.submodels[submodel].keeps_activations;
}

void StepGraphBuilder::add_step() {
  const auto ahead = static_cast<std::size_t>(plan_.strategy.weight_slots - 1);
  // Phases in order: forward of 0 ... last-1, backward of last ... 0.
  const std::size_t phases = 2 * last_ + 1;
  const auto submodel_of = [this](std::size_t phase) {
    return phase < last_ ? phase : 2 * last_ - phase;
  };
  std::size_t fetched = 0;
  const auto fetch_up_to = [&](std::size_t end) {
    for (; fetched < std::min(end, phases); ++fetched) {
      add_weights(submodel_of(fetched), fetched >= last_);
    }
  };
  for (std::size_t phase = 0; phase < phases; ++phase) {
    const std::size_t k = submodel_of(phase);
    fetch_up_to(phase + 1);
    const bool fetches_activations = phase >= last_ && k > 0 && !input_stays(k);
    const auto spare = static_cast<std::uint32_t>(plan_.strategy.spare_activation_slots);
    for (std::uint32_t m = 0; fetches_activations && m < spare; ++m) {
      for (std::size_t g = 0; g < gpus_; ++g) {
        if (m < micro_batches_of(g)) add_activation_fetch(g, k, m);
      }
    }
    fetch_up_to(phase + 1 + ahead);
    if (phase < last_) {
      add_forward_phase(k);
    } else {
      add_backward_phase(k);
    }
  }
  add_last_updates();
}

void StepGraphBuilder::add_forward_phase(std::size_t k) {
  for (std::uint32_t m = 0; m < most_micro_batches_; ++m) {
    for (std::size_t group = 0; group < groups_; ++group) {
      if (m >= micro_batches_[group]) continue;
      add_forward(group, k, m);
      if (input_stays(k + 1)) continue;
      for (const std::size_t g : members(group)) add_activation_offload(g, k + 1, m);
    }
  }
}

void StepGraphBuilder::add_forward(std::size_t group, std::size_t k, std::uint32_t m) {
  const auto gpus = members(group);
  const bool last_micro_batch = m + 1 == micro_batches_[group];
  std::vector<TaskId> predecessors;
  std::vector<SlotUse> uses;
  for (const std::size_t g : gpus) {
    auto& rings = rings_[g];
    const auto& weights = weights_[g][visit(k, false)];
    if (weights.ready) predecessors.push_back(*weights.ready);
    if (weights.slot) uses.push_back({*weights.slot, SlotRole::weights, false, last_micro_batch});
    if (k > 0) {
      const auto& input = boundary_[g][at(k, m)];
      predecessors.push_back(*input.ready);
      uses.push_back({*input.slot, SlotRole::input, false, !input_stays(k)});
    }
    // Micro-batch after micro-batch, so that the last one is the last to read the weights.
    if (m > 0) predecessors.push_back(*boundary_[g][at(k + 1, m - 1)].ready);
    auto& output = boundary_[g][at(k + 1, m)];
    output = {rings.activation.acquire(predecessors), {}, {}};
    uses.push_back({*output.slot, SlotRole::output, true, false});
    if (plan_.submodels[k].keeps_activations) {
      uses.push_back({kept_slots_[g][at(k, m)], SlotRole::kept, true, false});
    }
  }
  Task task = make_task(TaskKind::forward, Payload::none, gpus.front(), k);
  task.micro_batch = m;
  const TaskId id = graph_.add(task, compute_engines(group), predecessors, uses);
  for (const std::size_t g : gpus) {
    boundary_[g][at(k + 1, m)].ready = id;
    const auto& input = boundary_[g][at(k, m)];
    if (k > 0 && !input_stays(k)) rings_[g].activation.release(*input.slot, {id, *input.offload});
    const auto& weights = weights_[g][visit(k, false)];
    if (last_micro_batch && weights.slot) rings_[g].weights.release(*weights.slot, {id});
  }
}

void StepGraphBuilder::add_backward_phase(std::size_t k) {
  const bool fetches_activations = k > 0 && !input_stays(k);
  const auto early = static_cast<std::uint32_t>(plan_.strategy.spare_activation_slots);
  gradients_.assign(gpus_, {});
  for (std::uint32_t m = 0; m < most_micro_batches_; ++m) {
    for (std::size_t group = 0; group < groups_; ++group) {
      if (m >= micro_batches_[group]) continue;
      add_backward(group, k, m);
      if (!fetches_activations || m + early >= micro_batches_[group]) continue;
      for (const std::size_t g : members(group)) add_activation_fetch(g, k, m + early);
    }
    // By now its reduce-scatter had a micro-batch's time.
    if (pending_) add_gpu_updates(std::exchange(pending_, std::nullopt).value());
  }
  add_gradient_path(k);
}

// Reads the gradient of its output, leaves that of its input in the input's own slot.
void StepGraphBuilder::add_backward(std::size_t group, std::size_t k, std::uint32_t m) {
  const auto gpus = members(group);
  const bool last_micro_batch = m + 1 == micro_batches_[group];
  const bool has_head = k == last_;
  std::vector<TaskId> predecessors;
  std::vector<SlotUse> uses;
  for (const std::size_t g : gpus) {
    const auto& weights = weights_[g][visit(k, true)];
    auto& gradients = gradients_[g];
    if (weights.ready) predecessors.push_back(*weights.ready);
    if (weights.slot) uses.push_back({*weights.slot, SlotRole::weights, false, last_micro_batch});
    // Micro-batch after micro-batch: the first one clears the slot, and a sum's order fixes its
    // bits.
    if (m == 0) gradients.slot = rings_[g].gradients.acquire(predecessors);
    if (m > 0) predecessors.push_back(*gradients.ready);
    uses.push_back({*gradients.slot, SlotRole::gradients, m == 0, false});
    if (k > 0) {
      const auto& input = boundary_[g][at(k, m)];
      predecessors.push_back(*input.ready);
      uses.push_back({*input.slot, SlotRole::input, false, false});
    }
    if (!has_head) {
      const auto& output_gradient = boundary_[g][at(k + 1, m)];
      predecessors.push_back(*output_gradient.ready);
      uses.push_back({*output_gradient.slot, SlotRole::output_gradient, false, true});
    }
    if (plan_.submodels[k].keeps_activations) {
      uses.push_back({kept_slots_[g][at(k, m)], SlotRole::kept, false, true});
    }
  }
  Task task = make_task(TaskKind::backward, Payload::none, gpus.front(), k);
  task.micro_batch = m;
  const TaskId id = graph_.add(task, compute_engines(group), predecessors, uses);
  for (const std::size_t g : gpus) {
    boundary_[g][at(k, m)].ready = id;
    gradients_[g].ready = id;
    if (!has_head) rings_[g].activation.release(*boundary_[g][at(k + 1, m)].slot, {id});
    const auto& weights = weights_[g][visit(k, true)];
    if (last_micro_batch && weights.slot) rings_[g].weights.release(*weights.slot, {id});
  }
}

TaskGraph make_step_graph(const Plan& plan, std::uint32_t steps) {
  OFFSTAGE_CHECK(steps > 0, "a step graph needs at least one step");
  return StepGraphBuilder(plan).build(steps);
}

}  // namespace offstage::scheduler
