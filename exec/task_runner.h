#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "exec/blocks.h"
#include "exec/checkpoint_writer.h"
#include "exec/compute_arrays.h"
#include "exec/data.h"
#include "exec/decay_runs.h"
#include "exec/model_compute.h"
#include "exec/nvme_store.h"
#include "exec/optimizer.h"
#include "exec/parallel.h"
#include "exec/state.h"
#include "scheduler/plan.h"
#include "scheduler/task_graph.h"

// What each kind of task does to slots and state: the one place where a task graph meets
// arithmetic. When and on which thread a task runs is a backend's business; any order that the
// graph's edges allow gives the same bits, because every sum is taken in a fixed order.
//
//   TaskRunner runner(workplace, graph, first_step);
//   for (TaskId task = 0; task < graph.size(); ++task) runner.run(task);   // program order
//   runner.loss(0);                                                        // of the first step
namespace offstage::exec {

// How gradients change the state.
struct UpdateSettings {
  AdamW adamw;
  // Of a step, counted from 1; without it, adamw's in all of them.
  std::function<double(std::int64_t)> learning_rate = {};
  bool decay_all = false;                // norms and biases too
  std::optional<double> clip_norm = {};  // present when the plan clips
  std::uint64_t seed = 0;                // of the rounding of bf16 moments
};

class HostGroup;
class RunControls;

// What a runner works on, all borrowed for its lifetime.
struct Workplace {
  const scheduler::Plan& plan;
  PoolArenas& arenas;
  ParameterState& state;
  const Slots& slots;
  const TokenIds& token_ids;
  const Sampler& sampler;
  const ModelCompute* compute = nullptr;  // null with real GPUs
  const UpdateSettings& settings;
  NvmeStore* nvme = nullptr;                // null when the plan has no state on NVMe
  CheckpointWriter* checkpoints = nullptr;  // null when none are written
  HostGroup* hosts = nullptr;               // null when this one is alone
  RunControls* controls = nullptr;          // with others: what is agreed on
};

// Which of the hosts this is, and how many there are.
int rank_of(const Workplace& place);
int hosts_of(const Workplace& place);

class TaskRunner {
 public:
  // first_step: of the graph's first one, counted from the beginning of the training.
  // Owner: what is passed outlives the runner.
  TaskRunner(const Workplace& workplace, const scheduler::TaskGraph& graph,
             std::int64_t first_step);

  // Carries out one task whose predecessors are complete.
  // Thread: tasks that the graph does not order may run side by side.
  // Errors: Error(out_of_memory) naming task and ledger line when temporaries exceed what the plan
  // set aside; Error(io), Error(bad_input) for unreadable data; Error(io) when a drive fails.
  void run(scheduler::TaskId task);

  // Mean loss of a token in a step of the graph, once all its tasks have run.
  double loss(std::uint32_t step) const;
  // The sum of the tokens' losses of a backward task that ran elsewhere.
  void set_loss(scheduler::TaskId task, double sum);

 private:
  void copy_weights_in(scheduler::TaskId task) const;
  void copy_activation(scheduler::TaskId task) const;
  void send_gradients(scheduler::TaskId task) const;
  // Errors: Error(device) naming step and sub-model when a gradient is a NaN or an infinity.
  void require_finite(scheduler::TaskId task, std::span<const float> gradients) const;
  void all_gather(scheduler::TaskId task) const;
  void reduce_scatter(scheduler::TaskId task) const;
  // task_runner_hosts.cpp
  void sum_over_hosts(scheduler::TaskId task);
  void agree_on(std::uint32_t step);

  // task_runner_compute.cpp. What one GPU does of a task; with a tensor split all of a group do.
  struct Part {
    scheduler::TaskId task = 0;
    std::int64_t gpu = 0;
  };
  void compute(scheduler::TaskId task);
  void forward(const Part& part);
  void backward(const Part& part);
  // Reads the tokens of a micro-batch; its first task of a step does so for the later ones.
  void load_tokens(const Part& part) const;
  Tokens tokens(const Part& part) const;
  // output_role: of the part's output, or of that one's gradient.
  StoredArrays stored_arrays(const Part& part, scheduler::SlotRole output_role) const;

  // task_runner_updates.cpp
  void add_norm(scheduler::TaskId task);
  void update(scheduler::TaskId task);
  void move_moments(scheduler::TaskId task) const;
  std::byte* own_gradients(scheduler::TaskId task) const;
  void add_borrowed_gradients(scheduler::TaskId task) const;
  float gradient_scale(scheduler::TaskId task) const;
  Workers& workers(scheduler::TaskId task);

  // The use of a GPU's slot in this role, null where there is none.
  const scheduler::SlotUse* use(const Part& part, scheduler::SlotRole role) const;
  std::byte* bytes(const Part& part, scheduler::SlotRole role) const;
  // The slot of the GPU a task works for; a collective's slot on one GPU.
  std::byte* bytes(scheduler::TaskId task, scheduler::SlotRole role) const;
  std::byte* gpu_bytes(scheduler::TaskId task, std::int64_t gpu) const;
  // Of what is f32 in every training, or of an f32 one.
  float* slot(scheduler::TaskId task, scheduler::SlotRole role) const;
  float* gpu_slot(scheduler::TaskId task, std::int64_t gpu) const;

  const Workplace place_;
  const scheduler::TaskGraph& graph_;
  const std::int64_t first_step_;
  const bool bf16_;                  // weights, boundary activations and sent gradients are
  const std::int64_t weight_bytes_;  // of one in its slot
  // Sum of the tokens' losses of every micro-batch, by step, host, GPU and micro-batch: each is
  // written by one task, and added up in this order.
  std::vector<double> loss_sums_;
  // Sum of squares of every shard's gradients, by step, sub-model and GPU, when the plan clips.
  std::vector<double> squares_;
  std::vector<std::unique_ptr<KeptActivations>> kept_;  // by SlotId
  const DecayRuns decay_runs_;
  std::deque<Workers> workers_;  // by socket
  Workers caller_alone_{1};
};

}  // namespace offstage::exec
