#include <algorithm>

#include "exec/stream_backend.h"
#include "exec/stream_tasks.h"
#include "exec/trainer.h"
#include "scheduler/manager.h"
#include "scheduler/policy.h"

// The trainer on real GPUs: the same state, slots and steps, with streams as its engines.
namespace offstage::exec {

// What the sub-models are computed with, and how much LibTorch's temporaries may take: what the
// ledger leaves beside the buffers.
void Trainer::prepare_gpus() {
  DeviceLayer& devices = *options_.devices;
  for (const scheduler::SubModel& submodel : plan_.submodels) {
    for (int gpu = 0; gpu < devices.gpus(); ++gpu) {
      gpu_compute_.emplace_back(plan_.table, submodel.first_layer, submodel.end_layer,
                                plan_.workload.precision, devices.tensor_device(gpu));
    }
  }
  for (int gpu = 0; gpu < devices.gpus(); ++gpu) {
    const Arena& arena = arenas_.at(plan_.machine.gpus[static_cast<std::size_t>(gpu)].pool);
    devices.cap_temporaries(gpu, arena.capacity() - arena.live());
  }
}

// Returns the steps that were done.
std::uint32_t Trainer::run_on_gpus(Window& window, TaskRunner& runner) {
  const scheduler::TaskGraph& graph = window.graph;
  const auto costs = known_costs_of(graph);
  const auto policy = make_policy(plan_.strategy.policy, graph, costs, plan_.strategy.submit_ahead);
  StreamTasks tasks(workplace(), gpu_compute_, *options_.devices, graph, steps_done_);
  StreamBackend backend(
      graph, *options_.devices,
      {.enqueue = [&tasks](scheduler::TaskId task,
                           std::span<const StreamId> streams) { tasks.enqueue(task, streams); },
       .run = [&runner](scheduler::TaskId task) { runner.run(task); }});
  const RunControls::Window visible(controls_, backend);
  platform::Seconds step_begin;
  std::uint32_t done = 0;
  scheduler::RunObserver observer;
  observer.on_completion = [&](const scheduler::Completion& completion) {
    if (tasks.has_loss(completion.task)) {
      runner.set_loss(completion.task, tasks.loss(completion.task));
    }
  };
  observer.on_step_end = [&](std::uint32_t step, platform::Seconds end) {
    report_step(runner, step, end - step_begin);
    step_begin = end;
    done = step + 1;
  };
  try {
    window.trace = scheduler::Manager(graph, backend, *policy).run(observer);
  } catch (const EndedOnRequest&) {
  }
  return done;
}

// Of a pool of a GPU: the most that LibTorch took beside the buffers.
platform::Bytes Trainer::temporaries_peak(platform::PoolId pool) const {
  platform::Bytes peak;
  for (std::size_t gpu = 0; options_.devices != nullptr && gpu < plan_.machine.gpus.size(); ++gpu) {
    if (plan_.machine.gpus[gpu].pool == pool) {
      peak += options_.devices->temporaries_peak(static_cast<int>(gpu));
    }
  }
  return peak;
}

}  // namespace offstage::exec
