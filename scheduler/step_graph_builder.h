#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/plan.h"
#include "scheduler/slot_ring.h"
#include "scheduler/task_graph.h"

// Builds the sub-model-major step, phase by phase. Private to step_graph.h: step_graph.cpp has the
// phases and the compute tasks, step_graph_weights.cpp what brings weights and activations,
// step_graph_updates.cpp what becomes of the gradients.
//
// Note [Program order]
// The order in which tasks are added is the `planned` policy's order on every engine, and what
// makes slot reuse free of deadlock: a slot is released by tasks added before the next occupant's.
// Within a phase (a sub-model's forward or backward) weights of the following phases are fetched
// first, as far as slots reach. Going back with activations on the CPU, the first few activations
// of a sub-model come before the weights of the next one: they are needed sooner, and a fetch queue
// is first in, first out.
namespace offstage::scheduler {

class StepGraphBuilder {
 public:
  explicit StepGraphBuilder(const Plan& plan);
  TaskGraph build(std::uint32_t steps);

 private:
  // A slot with the task that last wrote it.
  struct Occupied {
    std::optional<SlotId> slot;     // absent: no slot of its own (resident weights on one GPU)
    std::optional<TaskId> ready;    // absent: nothing to wait for
    std::optional<TaskId> offload;  // copies it away; must be done before the slot is reused
  };
  struct GpuEngines {
    EngineId compute, h2d, d2h, collective;
    std::optional<EngineId> nvme_read, nvme_write;
  };
  struct GpuRings {
    SlotRing weights, gradients, activation, host_gradients, host_activation, host_nvme;
    SlotId tied_gradients = 0;
  };
  // A resident sub-model whose update waits for the reduce-scatter while backward goes on.
  struct PendingUpdate {
    std::size_t submodel = 0;
    std::vector<Occupied> gradients;  // [gpu]
  };
  template <typename T>
  using PerGpu = std::vector<std::vector<T>>;

  void make_engines();
  EngineId add_engine(const std::string& name, EngineKind kind, std::size_t device);
  void make_slots();
  void make_kept_slots(std::size_t gpu);

  void add_step();
  void add_forward_phase(std::size_t submodel);
  void add_forward(std::size_t group, std::size_t submodel, std::uint32_t micro_batch);
  void add_backward_phase(std::size_t submodel);
  void add_backward(std::size_t group, std::size_t submodel, std::uint32_t micro_batch);

  void add_weights(std::size_t submodel, bool going_back);
  void add_fetch(std::size_t gpu, std::size_t submodel, bool going_back);
  void add_all_gather(std::size_t submodel, bool going_back);
  void add_activation_offload(std::size_t gpu, std::size_t boundary, std::uint32_t micro_batch);
  void add_activation_fetch(std::size_t gpu, std::size_t boundary, std::uint32_t micro_batch);

  void add_reduce_scatter(std::size_t submodel);
  void add_gradient_path(std::size_t submodel);
  void add_gradient_offload(std::size_t gpu, std::size_t submodel);
  void add_host_reduction(std::size_t gpu, std::size_t submodel);
  void add_norm(std::size_t gpu, std::size_t submodel);
  void add_gpu_updates(const PendingUpdate& pending);
  void add_updates(std::size_t submodel);
  void add_update(std::size_t gpu, std::size_t submodel, const Occupied& nvme_state);
  Occupied add_nvme_read(std::size_t gpu, std::size_t submodel);
  void add_nvme_write(std::size_t gpu, std::size_t submodel, const Occupied& state);
  void add_last_updates();

  // The socket in whose memory a host slot is.
  std::uint16_t socket_of(SlotId slot) const;
  Task make_task(TaskKind kind, Payload payload, std::size_t gpu, std::size_t submodel) const;
  std::size_t at(std::size_t boundary, std::uint32_t micro_batch) const {
    return boundary * most_micro_batches_ + micro_batch;
  }
  // A sub-model's weights come on twice a step. The second time may begin before the first is over,
  // so the two visits are told apart.
  std::size_t visit(std::size_t submodel, bool going_back) const {
    return 2 * submodel + (going_back ? 1 : 0);
  }
  std::vector<EngineId> collective_engines() const;
  std::vector<EngineId> compute_engines(std::size_t group) const;
  std::uint32_t micro_batches_of(std::size_t gpu) const { return micro_batches_[gpu / ways_]; }
  // The GPUs that work on a micro-batch together; one, unless there is a tensor split.
  std::vector<std::size_t> members(std::size_t group) const;
  // The GPUs whose shards make up the flat buffer that this GPU has a shard of.
  std::vector<std::size_t> sharers(std::size_t gpu) const;
  // Whether the input of a sub-model stays on the GPU from its forward to its backward.
  bool input_stays(std::size_t submodel) const;
  bool is_tied_head(std::size_t submodel) const { return tied_ && submodel == last_; }

  const Plan& plan_;
  std::size_t gpus_, groups_, ways_;
  std::size_t last_;                          // sub-model: the head
  std::vector<std::uint32_t> micro_batches_;  // by group
  std::uint32_t most_micro_batches_;
  bool on_cpu_;
  bool tied_;
  bool clips_;
  std::uint32_t step_ = 0;
  TaskGraph graph_;
  std::vector<EngineId> optimizers_;  // by socket
  std::optional<EngineId> network_;   // with several hosts
  std::vector<GpuEngines> engines_;
  std::vector<GpuRings> rings_;
  PerGpu<SlotId> kept_slots_;        // [gpu][sub-model x micro-batch], of those that keep
  PerGpu<Occupied> weights_;         // [gpu][visit]
  PerGpu<Occupied> boundary_;        // [gpu][boundary x micro-batch], on the GPU; a boundary is
                                     // named by the sub-model that reads it
  PerGpu<Occupied> host_boundary_;   // the same in CPU memory
  std::vector<Occupied> gradients_;  // [gpu], of the sub-model going back
  PerGpu<Occupied> host_gradients_;  // [gpu][sub-model], in CPU memory
  PerGpu<std::optional<TaskId>> last_update_;     // [gpu][sub-model]
  PerGpu<std::optional<TaskId>> last_write_;      // [gpu][sub-model], to NVMe
  std::vector<std::optional<TaskId>> last_norm_;  // [gpu]
  std::optional<PendingUpdate> pending_;
};

}  // namespace offstage::scheduler
