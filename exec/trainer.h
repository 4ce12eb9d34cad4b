#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/autograd_sub_model.h"
#include "exec/blocks.h"
#include "exec/checkpoint.h"
#include "exec/checkpoint_writer.h"
#include "exec/data.h"
#include "exec/device_layer.h"
#include "exec/host_group.h"
#include "exec/model_compute.h"
#include "exec/nvme_store.h"
#include "exec/run_controls.h"
#include "exec/state.h"
#include "exec/task_runner.h"
#include "exec/validation.h"
#include "platform/units.h"
#include "scheduler/plan.h"
#include "scheduler/policy.h"
#include "scheduler/run_config.h"
#include "scheduler/task_graph.h"
#include "scheduler/trace.h"

// Trains a plan's model on the CPU's virtual GPUs, or on real ones. Steps run in windows: a window
// is one task graph of a few steps, in which the work of neighbouring steps overlaps; between
// windows everything comes to rest, so that a graph stays small however long the training is.
//
//   Trainer trainer(plan, config, options);
//   const TrainResult result = trainer.train(config.steps);
//   result.losses.back();                       // see tests/exec/training_test.cpp
namespace offstage::exec {

struct StepReport {
  std::int64_t step = 0;  // from 1
  double loss = 0.0;
  double learning_rate = 0.0;
  platform::Seconds time;  // since the end of the step before, or since its window began
};

struct TrainerOptions {
  // Steps of one task graph.
  std::uint32_t window = 16;
  // One task at a time, in program order, on the calling thread: what an asynchronous run must
  // equal.
  bool serial = false;
  // Of every task of a graph, for policies that rank tasks; without it they know none.
  std::function<std::vector<scheduler::TaskCost>(const scheduler::TaskGraph&)> costs = {};
  // Called at the end of every step; may throw to end the training.
  std::function<void(const StepReport&)> on_step = {};
  // Called with the loss on the validation data, whenever there is one; a token's mean.
  std::function<void(std::int64_t steps_done, double loss)> on_validation = {};
  std::optional<CheckpointSettings> checkpoints = {};
  CheckpointEvents checkpoint_events = {};
  // The GPUs to train on, as many as the plan's; null: virtual ones. Owner: outlive the trainer.
  DeviceLayer* devices = nullptr;
  // As many as the plan's; null: this one alone. Owner: outlive the trainer.
  HostGroup* hosts = nullptr;
  // A virtual GPU that is to fail as a real one would, with GpuLost, in this step.
  std::optional<scheduler::LostGpu> lose = {};
};

struct PoolPeak {
  std::string pool;
  platform::Bytes live;     // now
  platform::Bytes peak;     // measured
  platform::Bytes planned;  // what the ledger gives the run
};

struct TrainResult {
  std::vector<double> losses;    // mean of a token, by step
  platform::Seconds step;        // median in the steady state
  std::vector<PoolPeak> memory;  // of pools the run uses
  scheduler::TaskGraph graph;    // of the last full window
  std::int64_t first_step = 0;   // of that window, from 0
  scheduler::Trace trace;        // the same; its clock starts with the window
};

class Trainer {
 public:
  // Allocates everything the ledger lists and fills in the initial weights.
  // Owner: the plan outlives the trainer.
  // Errors: Error(bad_input) for a model the CPU backend can't compute, bad data, or a
  // config that lacks what the plan needs (nvme_directory, clip_norm); Error(io);
  // Error(out_of_memory).
  Trainer(const scheduler::Plan& plan, const scheduler::TrainConfig& config,
          TrainerOptions options);

  // Goes on from a checkpoint of this model, whatever plan it was written under. Precondition: no
  // step has been trained. Errors: Error(io).
  void restore(const Checkpoint& checkpoint);

  // With several hosts: host 0's state, what it restored included, becomes everybody's. All call
  // it, before the first step. Errors: Error(device) when a host is lost.
  void share_state();

  // Continues for `steps` more steps, or until it is told to stop.
  // Errors: what a task threw; Error(device) when hosts' weights have parted. The trainer can't be
  // used afterwards.
  TrainResult train(std::int64_t steps);

  // Steps at their end, an earlier training's with a checkpoint included. Thread: any.
  std::int64_t steps_done() const { return ended_; }
  // A checkpoint of what is there now, without going on; none when this step has one.
  // Precondition: everything is at rest, between train() calls or while paused.
  void write_checkpoint(std::int64_t step);
  CheckpointWriter* checkpoints() { return checkpoints_ ? &*checkpoints_ : nullptr; }
  // Thread: any.
  RunControls& controls() { return controls_; }
  std::vector<PoolPeak> memory() const;

  const ParameterState& state() const { return state_; }
  // Null when the plan has no state on NVMe.
  const NvmeStore* nvme() const { return nvme_ ? &*nvme_ : nullptr; }
  const Dataset& data() const { return data_; }
  const Sampler& sampler() const { return sampler_; }

 private:
  struct Window {
    scheduler::TaskGraph graph;
    scheduler::Trace trace;  // empty when the window was ended before its end
    std::vector<double> losses;
  };

  Window run_window(std::uint32_t steps);
  scheduler::KnownCosts known_costs_of(const scheduler::TaskGraph& graph) const;
  // On virtual GPUs.
  void run_task(const scheduler::TaskGraph& graph, TaskRunner& runner, scheduler::TaskId task);
  std::uint32_t run_parallel(Window& window, TaskRunner& runner);
  std::uint32_t run_serial(Window& window, TaskRunner& runner);
  std::int64_t next_window(std::int64_t left) const;
  Workplace workplace();
  void validate();
  void report_step(const TaskRunner& runner, std::uint32_t step, platform::Seconds time);
  std::byte* nvme_slot(std::int64_t gpu) const;
  // trainer_hosts.cpp
  void require_hosts() const;
  std::string weights_fingerprint() const;
  void require_equal_weights() const;
  // trainer_gpus.cpp
  void prepare_gpus();
  std::uint32_t run_on_gpus(Window& window, TaskRunner& runner);
  platform::Bytes temporaries_peak(platform::PoolId pool) const;

  const scheduler::Plan& plan_;
  const TrainerOptions options_;
  const UpdateSettings settings_;
  const Dataset data_;
  const Sampler sampler_;
  std::optional<ModelCompute> compute_;       // of virtual GPUs
  std::deque<AutogradSubModel> gpu_compute_;  // by sub-model, then GPU, of real ones
  PoolArenas arenas_;
  ParameterState state_;
  std::optional<NvmeStore> nvme_;  // of plans with state on NVMe
  Slots slots_;
  TokenIds token_ids_;
  std::int64_t validate_every_ = 0;  // steps; 0: never
  std::optional<Validation> validation_;
  RunControls controls_;
  std::int64_t steps_done_ = 0;                  // before the window
  std::atomic<std::int64_t> ended_ = 0;          // steps, those of the window included
  std::optional<CheckpointWriter> checkpoints_;  // last: its thread reads the state
};

}  // namespace offstage::exec
