#include "scheduler/step_graph.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "platform/error.h"
#include "scheduler/plan_ledger.h"
#include "scheduler/slot_ring.h"

// Note [Program order]
// The order in which tasks are added is the `planned` policy's order on every engine, and what
// makes slot reuse free of deadlock: a slot is released by tasks added before the next occupant's.
// Within a phase (a sub-model's forward or backward) weights of the following phases are fetched
// first, as far as slots reach. Going back with activations on the CPU, the first few activations
// of a sub-model come before the weights of the next one: they are needed sooner, and a fetch queue
// is first in, first out.

namespace offstage::scheduler {
namespace {

class StepGraphBuilder {
 public:
  explicit StepGraphBuilder(const Plan& plan)
      : plan_(plan),
        gpus_(plan.machine.gpus.size()),
        submodels_(plan.submodels.size()),
        micro_batches_(static_cast<std::uint32_t>(plan.micro_batches())),
        on_cpu_(plan.strategy.activations == ActivationPlace::cpu),
        tied_(plan.submodels.back().borrowed > 0) {
    make_engines();
    make_slots();
    weights_.assign(gpus_, std::vector<Occupied>(submodels_));
    host_gradients_ = weights_;
    last_update_.assign(gpus_, std::vector<std::optional<TaskId>>(submodels_));
    for (auto* boundary : {&boundary_, &host_boundary_}) {
      boundary->assign(gpus_, std::vector<Occupied>((submodels_ + 1) * micro_batches_));
    }
  }

  TaskGraph build(std::uint32_t steps) {
    graph_.steps = steps;
    for (step_ = 0; step_ < steps; ++step_) add_step();
    graph_.finish();
    return std::move(graph_);
  }

 private:
  // A slot with the task that last wrote it and, once known, who reads it last.
  struct Occupied {
    SlotId slot = 0;
    std::optional<TaskId> ready;    // absent: nothing is there
    std::optional<TaskId> offload;  // copies it away; must be done before the slot is reused
  };
  struct GpuEngines {
    EngineId compute, h2d, d2h, collective, optimizer;
  };
  struct GpuRings {
    SlotRing weights, gradients, activation, host_gradients, host_activation;
    SlotId tied_gradients = 0;
  };

  void make_engines();
  void make_slots();
  void add_step();
  void add_weights(std::size_t submodel);
  void add_forward(std::size_t submodel);
  void add_activation_offload(std::size_t gpu, std::size_t boundary, std::uint32_t micro_batch);
  void add_activation_fetch(std::size_t gpu, std::size_t boundary, std::uint32_t micro_batch);
  void add_backward_phase(std::size_t submodel, bool fetch_weights_below);
  void add_backward(std::size_t gpu, std::size_t submodel, std::uint32_t micro_batch);
  void add_gradient_path(std::size_t submodel);
  void add_gradient_offload(std::size_t gpu, std::size_t submodel);
  void add_updates(std::size_t submodel);

  Task make_task(TaskKind kind, Payload payload, std::size_t gpu, std::size_t submodel) const {
    Task task;
    task.kind = kind;
    task.payload = payload;
    task.gpu = static_cast<std::uint16_t>(gpu);
    task.submodel = static_cast<std::uint16_t>(submodel);
    task.step = step_;
    return task;
  }
  std::size_t at(std::size_t boundary, std::uint32_t micro_batch) const {
    return boundary * micro_batches_ + micro_batch;
  }
  std::vector<EngineId> collective_engines() const {
    std::vector<EngineId> engines;
    for (const auto& gpu : engines_) engines.push_back(gpu.collective);
    return engines;
  }

  const Plan& plan_;
  std::size_t gpus_;
  std::size_t submodels_;
  std::uint32_t micro_batches_;
  bool on_cpu_;
  bool tied_;
  std::uint32_t step_ = 0;
  TaskGraph graph_;
  std::vector<GpuEngines> engines_;
  std::vector<GpuRings> rings_;
  std::vector<std::vector<Occupied>> weights_;         // [gpu][sub-model]
  std::vector<std::vector<Occupied>> boundary_;        // [gpu][boundary x micro-batch], on the GPU
  std::vector<std::vector<Occupied>> host_boundary_;   // the same in CPU memory
  std::vector<Occupied> gradients_;                    // [gpu], of the sub-model going back
  std::vector<std::vector<Occupied>> host_gradients_;  // [gpu][sub-model], in CPU memory
  std::vector<std::vector<std::optional<TaskId>>> last_update_;  // [gpu][sub-model]
};

void StepGraphBuilder::make_engines() {
  const auto add = [this](const std::string& name, EngineKind kind, std::size_t device) {
    graph_.engines.push_back({name, kind, static_cast<std::uint16_t>(device)});
    return static_cast<EngineId>(graph_.engines.size() - 1);
  };
  std::vector<EngineId> optimizers;
  for (std::size_t s = 0; s < plan_.machine.sockets.size(); ++s) {
    optimizers.push_back(
        add(plan_.machine.sockets[s].name + ".optimizer", EngineKind::optimizer, s));
  }
  for (std::size_t g = 0; g < gpus_; ++g) {
    const auto& gpu = plan_.machine.gpus[g];
    engines_.push_back(
        {add(gpu.name + ".compute", EngineKind::compute, g),
         add(gpu.name + ".h2d", EngineKind::h2d, g), add(gpu.name + ".d2h", EngineKind::d2h, g),
         add(gpu.name + ".collective", EngineKind::collective, g), optimizers[gpu.socket]});
  }
}

void StepGraphBuilder::make_slots() {
  const auto counts = slot_counts(plan_);
  for (std::size_t g = 0; g < gpus_; ++g) {
    const auto& gpu = plan_.machine.gpus[g];
    const auto host = plan_.machine.sockets[gpu.socket].pool;
    const auto add = [&](SlotKind kind, platform::PoolId pool, std::uint32_t index) {
      graph_.slots.push_back(
          {kind, pool, static_cast<std::uint16_t>(g), index, slot_bytes(plan_, kind, index)});
      return static_cast<SlotId>(graph_.slots.size() - 1);
    };
    const auto fill = [&](SlotRing& ring, SlotKind kind, platform::PoolId pool,
                          std::uint32_t count) {
      for (std::uint32_t i = 0; i < count; ++i) ring.add(add(kind, pool, i));
    };
    auto& rings = rings_.emplace_back();
    fill(rings.weights, SlotKind::weights, gpu.pool, counts.weights);
    fill(rings.gradients, SlotKind::gradients, gpu.pool, counts.gradients);
    fill(rings.activation, SlotKind::activation, gpu.pool, counts.activation);
    const std::uint32_t ring = counts.host_gradients - (counts.tied_gradients ? 1 : 0);
    fill(rings.host_gradients, SlotKind::host_gradients, host, ring);
    if (counts.tied_gradients) {
      rings.tied_gradients = add(SlotKind::host_gradients, host, ring);
    }
    fill(rings.host_activation, SlotKind::host_activation, host, counts.host_activation);
  }
}

void StepGraphBuilder::add_step() {
  const std::size_t last = submodels_ - 1;
  const auto ahead = static_cast<std::size_t>(plan_.strategy.weight_slots - 1);
  // Phases in order: forward of 0 ... last-1, backward of last ... 0.
  const std::size_t phases = 2 * submodels_ - 1;
  const auto submodel_of = [last](std::size_t phase) {
    return phase < last ? phase : 2 * last - phase;
  };
  std::size_t fetched = 0;
  for (std::size_t phase = 0; phase < phases; ++phase) {
    const auto fetch_up_to = [&](std::size_t end) {
      for (; fetched < std::min(end, phases); ++fetched) add_weights(submodel_of(fetched));
    };
    fetch_up_to(phase + 1);
    if (phase < last) {
      fetch_up_to(phase + 1 + ahead);
      add_forward(submodel_of(phase));
      continue;
    }
    const std::size_t k = submodel_of(phase);
    const bool fetches_activations = on_cpu_ && k > 0 && k < last;
    const auto spare = static_cast<std::uint32_t>(plan_.strategy.spare_activation_slots);
    const std::uint32_t early = fetches_activations ? std::min(spare, micro_batches_) : 0;
    for (std::uint32_t m = 0; m < early; ++m) {
      for (std::size_t g = 0; g < gpus_; ++g) add_activation_fetch(g, k, m);
    }
    fetch_up_to(phase + 1 + ahead);
    gradients_.assign(gpus_, {});
    for (std::uint32_t m = 0; m < micro_batches_; ++m) {
      for (std::size_t g = 0; g < gpus_; ++g) {
        add_backward(g, k, m);
        if (fetches_activations && m + early < micro_batches_) {
          add_activation_fetch(g, k, m + early);
        }
      }
    }
    add_gradient_path(k);
    if (!(tied_ && k == last)) add_updates(k);
    if (tied_ && k == 0) add_updates(last);
  }
}

// Fetches every GPU's shard, then completes it over the GPUs.
void StepGraphBuilder::add_weights(std::size_t k) {
  const auto& submodel = plan_.submodels[k];
  const auto element = element_bytes(plan_.workload.precision).weight;
  std::vector<TaskId> fetches;
  std::vector<SlotUse> gathered;
  for (std::size_t g = 0; g < gpus_; ++g) {
    std::vector<TaskId> predecessors;
    const SlotId slot = rings_[g].weights.acquire(predecessors);
    const auto wait_for = [&](std::size_t gpu, std::size_t updated) {
      if (const auto task = last_update_[gpu][updated]) predecessors.push_back(*task);
    };
    wait_for(g, k);
    if (submodel.borrowed > 0) {
      // The borrowed matrix is cut differently here and in sub-model 0.
      for (std::size_t other = 0; other < gpus_; ++other) wait_for(other, 0);
    }
    Task task = make_task(TaskKind::fetch, Payload::weights, g, k);
    task.bytes = {shard_range(submodel, static_cast<std::int64_t>(g)).size() * element};
    const SlotUse use{slot, SlotRole::weights, true, false};
    fetches.push_back(graph_.add(task, {{engines_[g].h2d}}, predecessors, {{use}}));
    weights_[g][k] = {slot, fetches.back(), {}};
    gathered.push_back({slot, SlotRole::weights, false, false});
  }
  if (gpus_ == 1) return;
  Task task = make_task(TaskKind::all_gather, Payload::weights, 0, k);
  task.bytes = {submodel.shard_elements * plan_.gpus() * element};
  const TaskId gather = graph_.add(task, collective_engines(), fetches, gathered);
  for (std::size_t g = 0; g < gpus_; ++g) weights_[g][k].ready = gather;
}

void StepGraphBuilder::add_forward(std::size_t k) {
  const std::size_t last = submodels_ - 1;
  for (std::uint32_t m = 0; m < micro_batches_; ++m) {
    for (std::size_t g = 0; g < gpus_; ++g) {
      auto& rings = rings_[g];
      auto& weights = weights_[g][k];
      std::vector<TaskId> predecessors{*weights.ready};
      std::vector<SlotUse> uses{{weights.slot, SlotRole::weights, false, m + 1 == micro_batches_}};
      auto& input = boundary_[g][at(k, m)];
      if (k > 0) {
        predecessors.push_back(*input.ready);
        uses.push_back({input.slot, SlotRole::input, false, on_cpu_});
      }
      // Micro-batch after micro-batch, so that the last one is the last to read the weights.
      if (m > 0) predecessors.push_back(*boundary_[g][at(k + 1, m - 1)].ready);
      auto& output = boundary_[g][at(k + 1, m)];
      output = {rings.activation.acquire(predecessors), {}, {}};
      uses.push_back({output.slot, SlotRole::output, true, false});
      Task task = make_task(TaskKind::forward, Payload::none, g, k);
      task.micro_batch = m;
      const TaskId id = graph_.add(task, {{engines_[g].compute}}, predecessors, uses);
      output.ready = id;
      if (k > 0 && on_cpu_) rings.activation.release(input.slot, {id, *input.offload});
      if (on_cpu_ && k + 1 < last) add_activation_offload(g, k + 1, m);
      if (m + 1 == micro_batches_) rings.weights.release(weights.slot, {id});
    }
  }
}

void StepGraphBuilder::add_activation_offload(std::size_t gpu, std::size_t boundary,
                                              std::uint32_t micro_batch) {
  auto& source = boundary_[gpu][at(boundary, micro_batch)];
  std::vector<TaskId> predecessors{*source.ready};
  const SlotId host = rings_[gpu].host_activation.acquire(predecessors);
  // A boundary is named by the sub-model that reads it.
  Task task = make_task(TaskKind::offload, Payload::activations, gpu, boundary);
  task.micro_batch = micro_batch;
  task.bytes = plan_.boundary_bytes();
  const TaskId id = graph_.add(task, {{engines_[gpu].d2h}}, predecessors,
                               {{SlotUse{source.slot, SlotRole::output, false, true},
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
  task.micro_batch = micro_batch;
  task.bytes = plan_.boundary_bytes();
  const TaskId id = graph_.add(task, {{engines_[gpu].h2d}}, predecessors,
                               {{SlotUse{slot, SlotRole::output, true, false},
                                 SlotUse{source.slot, SlotRole::host, false, true}}});
  rings_[gpu].host_activation.release(source.slot, {id});
  boundary_[gpu][at(boundary, micro_batch)] = {slot, id, {}};
}

// Reads the gradient of its output, leaves that of its input in the input's own slot.
void StepGraphBuilder::add_backward(std::size_t g, std::size_t k, std::uint32_t m) {
  auto& rings = rings_[g];
  auto& weights = weights_[g][k];
  auto& gradients = gradients_[g];
  const bool last_micro_batch = m + 1 == micro_batches_;
  std::vector<TaskId> predecessors{*weights.ready};
  std::vector<SlotUse> uses{{weights.slot, SlotRole::weights, false, last_micro_batch}};
  // Micro-batch after micro-batch: the first one clears the slot, and a sum's order fixes its bits.
  if (m == 0) gradients.slot = rings.gradients.acquire(predecessors);
  if (m > 0) predecessors.push_back(*gradients.ready);
  uses.push_back({gradients.slot, SlotRole::gradients, m == 0, false});
  auto& input = boundary_[g][at(k, m)];
  if (k > 0) {
    predecessors.push_back(*input.ready);
    uses.push_back({input.slot, SlotRole::input, false, false});
  }
  const auto& output_gradient = boundary_[g][at(k + 1, m)];
  const bool has_head = k + 1 == submodels_;
  if (!has_head) {
    predecessors.push_back(*output_gradient.ready);
    uses.push_back({output_gradient.slot, SlotRole::output_gradient, false, true});
  }
  Task task = make_task(TaskKind::backward, Payload::none, g, k);
  task.micro_batch = m;
  const TaskId id = graph_.add(task, {{engines_[g].compute}}, predecessors, uses);
  input.ready = id;
  gradients.ready = id;
  if (!has_head) rings.activation.release(output_gradient.slot, {id});
  if (last_micro_batch) rings.weights.release(weights.slot, {id});
}

// Sums gradients over the GPUs and sends each GPU's shard to the CPU.
void StepGraphBuilder::add_gradient_path(std::size_t k) {
  const auto& submodel = plan_.submodels[k];
  const auto element = element_bytes(plan_.workload.precision).sent_gradient;
  if (gpus_ > 1) {
    std::vector<TaskId> predecessors;
    std::vector<SlotUse> uses;
    for (const auto& gradients : gradients_) {
      predecessors.push_back(*gradients.ready);
      uses.push_back({gradients.slot, SlotRole::gradients, false, false});
    }
    Task task = make_task(TaskKind::reduce_scatter, Payload::gradients, 0, k);
    task.bytes = {submodel.shard_elements * plan_.gpus() * element};
    const TaskId reduce = graph_.add(task, collective_engines(), predecessors, uses);
    for (auto& gradients : gradients_) gradients.ready = reduce;
  }
  for (std::size_t g = 0; g < gpus_; ++g) add_gradient_offload(g, k);
}

void StepGraphBuilder::add_gradient_offload(std::size_t g, std::size_t k) {
  auto& gradients = gradients_[g];
  std::vector<TaskId> predecessors{*gradients.ready};
  auto& host = host_gradients_[g][k];
  if (tied_ && k + 1 == submodels_) {
    // One slot for good. Last step's readers: every GPU's update of the embedding, and this GPU's
    // of the head.
    host.slot = rings_[g].tied_gradients;
    for (const auto& updates : last_update_) {
      if (updates[0]) predecessors.push_back(*updates[0]);
    }
    if (const auto update = last_update_[g][k]) predecessors.push_back(*update);
  } else {
    host.slot = rings_[g].host_gradients.acquire(predecessors);
  }
  Task task = make_task(TaskKind::offload, Payload::gradients, g, k);
  task.bytes = {shard_range(plan_.submodels[k], static_cast<std::int64_t>(g)).size() *
                element_bytes(plan_.workload.precision).sent_gradient};
  const TaskId id = graph_.add(task, {{engines_[g].d2h}}, predecessors,
                               {{SlotUse{gradients.slot, SlotRole::gradients, false, true},
                                 SlotUse{host.slot, SlotRole::host, true, false}}});
  rings_[g].gradients.release(gradients.slot, {id});
  host.ready = id;
}

// The slots of an update: its own shard's gradients first; for the embedding of a model with a tied
// head, then the head's gradients of every GPU.
void StepGraphBuilder::add_updates(std::size_t k) {
  const std::size_t last = submodels_ - 1;
  for (std::size_t g = 0; g < gpus_; ++g) {
    const auto& own = host_gradients_[g][k];
    std::vector<TaskId> predecessors{*own.ready};
    std::vector<SlotUse> uses{{own.slot, SlotRole::host, false, true}};
    if (tied_ && k == 0) {
      for (std::size_t other = 0; other < gpus_; ++other) {
        const auto& head = host_gradients_[other][last];
        predecessors.push_back(*head.ready);
        uses.push_back({head.slot, SlotRole::host, false, true});
      }
    }
    Task task = make_task(TaskKind::update, Payload::none, g, k);
    task.elements = owned_range(plan_.submodels[k], static_cast<std::int64_t>(g)).size();
    const TaskId id = graph_.add(task, {{engines_[g].optimizer}}, predecessors, uses);
    if (!(tied_ && k == last)) rings_[g].host_gradients.release(own.slot, {id});
    last_update_[g][k] = id;
  }
}

}  // namespace

TaskGraph make_step_graph(const Plan& plan, std::uint32_t steps) {
  OFFSTAGE_CHECK(steps > 0, "a step graph needs at least one step");
  return StepGraphBuilder(plan).build(steps);
}

}  // namespace offstage::scheduler
