#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "exec/blocks.h"
#include "exec/data.h"
#include "exec/optimizer.h"
#include "exec/state.h"
#include "scheduler/plan.h"
#include "scheduler/task_graph.h"

// What each kind of task does to slots and state: the one place where a task graph meets
// arithmetic. When and on which thread a task runs is a backend's business; any order that the
// graph's edges allow gives the same bits, because every sum is taken in a fixed order.
//
//   TaskRunner runner({plan, arenas, state, slots, token_ids, sampler, compute, adamw}, graph,
//   first_step); for (TaskId task = 0; task < graph.size(); ++task) runner.run(task);   // program
//   order runner.losses();                                                       // by step
namespace offstage::exec {

// What a runner works on, all borrowed for its lifetime.
struct Workplace {
  const scheduler::Plan& plan;
  PoolArenas& arenas;
  ParameterState& state;
  const Slots& slots;
  const TokenIds& token_ids;
  const Sampler& sampler;
  const std::deque<SubModelCompute>& compute;  // by sub-model
  const AdamW& optimizer;
};

class TaskRunner {
 public:
  // first_step: of the graph's first one, counted from the beginning of the training.
  // Owner: what is passed outlives the runner.
  TaskRunner(const Workplace& workplace, const scheduler::TaskGraph& graph,
             std::int64_t first_step);

  // Carries out one task whose predecessors are complete.
  // Thread: tasks that the graph does not order may run side by side.
  // Errors: Error(out_of_memory) naming task and ledger line when temporaries exceed what the plan
  // set aside; Error(io), Error(bad_input) for unreadable data.
  void run(scheduler::TaskId task);

  // Mean loss of a token in a step of the graph, once all its tasks have run.
  double loss(std::uint32_t step) const;

 private:
  void copy_weights_in(scheduler::TaskId task) const;
  void copy_activation(scheduler::TaskId task) const;
  void send_gradients(scheduler::TaskId task) const;
  void all_gather(scheduler::TaskId task) const;
  void reduce_scatter(scheduler::TaskId task) const;
  void forward(scheduler::TaskId task) const;
  void backward(scheduler::TaskId task);
  void update(scheduler::TaskId task) const;
  void add_borrowed_gradients(scheduler::TaskId task, float* gradients) const;

  // Reads the tokens of a micro-batch; its first task of a step does so for the later ones.
  void load_tokens(scheduler::TaskId task) const;
  Tokens tokens(scheduler::TaskId task) const;
  Weights weights(scheduler::TaskId task) const;
  // The slot a task uses in this role, null where it has none; a collective's slot on one GPU.
  float* slot(scheduler::TaskId task, scheduler::SlotRole role) const;
  float* gpu_slot(scheduler::TaskId task, std::int64_t gpu) const;

  const Workplace place_;
  const scheduler::TaskGraph& graph_;
  const std::int64_t first_step_;
  // Sum of the tokens' losses of every micro-batch, by step, GPU and micro-batch: each is written
  // by one task, and added up in this order.
  std::vector<double> loss_sums_;
};

}  // namespace offstage::exec
