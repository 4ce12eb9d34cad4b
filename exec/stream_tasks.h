#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "exec/autograd_sub_model.h"
#include "exec/device_layer.h"
#include "exec/task_runner.h"
#include "scheduler/plan.h"
#include "scheduler/task_graph.h"

// What the tasks of real GPUs give their streams: copies, collectives, a sub-model's kernels. Those
// of the CPU (updates, norms, drives) are TaskRunner's, the same as with virtual GPUs.
//
//   StreamTasks tasks(place, compute, devices, graph, first_step);
//   StreamBackend backend(graph, devices, {.enqueue = [&](auto task, auto streams) {
//                                            tasks.enqueue(task, streams); }, ...});
namespace offstage::exec {

// Errors: Error(bad_input) naming the knob, for a plan with a tensor split, state or weights on the
// GPUs, kept activations, or several hosts: streams do not carry these out.
void require_streamable(const scheduler::Plan& plan);

class StreamTasks {
 public:
  // compute: by sub-model, then GPU. Precondition: require_streamable(place.plan); the slots'
  // memory is the devices'. Owner: what is passed outlives the object.
  StreamTasks(const Workplace& place, const std::deque<AutogradSubModel>& compute,
              DeviceLayer& devices, const scheduler::TaskGraph& graph, std::int64_t first_step);

  // Thread: any, for different tasks at a time.
  // Errors: Error(device), Error(out_of_memory); Error(io) for unreadable data.
  void enqueue(scheduler::TaskId task, std::span<const StreamId> streams);

  // Whether a task reports a loss, and the sum of its tokens' losses once it is complete.
  bool has_loss(scheduler::TaskId task) const;
  double loss(scheduler::TaskId task) const;

 private:
  void fetch_weights(scheduler::TaskId task, StreamId stream) const;
  void copy_activation(scheduler::TaskId task, StreamId stream) const;
  void send_gradients(scheduler::TaskId task, StreamId stream) const;
  void reduce_scatter(scheduler::TaskId task, std::span<const StreamId> streams) const;
  void narrow(std::byte* gradients, std::int64_t count, int gpu, StreamId stream) const;
  const std::byte* stored_weights(const StateShard& shard) const;
  void forward(scheduler::TaskId task, StreamId stream) const;
  void backward(scheduler::TaskId task, StreamId stream) const;
  std::vector<DeviceWork::Part> parts(scheduler::TaskId task,
                                      std::span<const StreamId> streams) const;
  std::byte* slot(scheduler::TaskId task, scheduler::SlotRole role) const;
  AutogradSubModel::DeviceWeights weights(scheduler::TaskId task) const;
  const AutogradSubModel& compute_of(const scheduler::Task& work) const;
  std::size_t loss_index(scheduler::TaskId task) const;

  const Workplace place_;
  const std::deque<AutogradSubModel>& compute_;
  DeviceLayer& devices_;
  const scheduler::TaskGraph& graph_;
  const std::int64_t first_step_;
  const scheduler::ElementBytes bytes_;
  // Written by the GPUs: a few bytes that no ledger lists.
  Arena loss_arena_;
  Buffer losses_;  // f32, by step, GPU and micro-batch
};

}  // namespace offstage::exec
