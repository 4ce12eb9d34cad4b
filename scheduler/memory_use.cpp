#include "scheduler/memory_use.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "scheduler/plan_ledger.h"

namespace offstage::scheduler {
namespace {

using platform::Bytes;

// Parameters' state, wherever it lies, and the token ids of a step.
void add_still_bytes(const Plan& plan, std::vector<Bytes>& pools) {
  const auto& machine = plan.machine;
  const std::int64_t whole = state_bytes(plan.strategy.moments);
  const std::int64_t weight = element_bytes(plan.workload.precision).weight;
  for (std::size_t g = 0; g < machine.gpus.size(); ++g) {
    const auto on_gpu = machine.gpus[g].pool;
    for (std::size_t k = 0; k < plan.submodels.size(); ++k) {
      const auto& submodel = plan.submodels[k];
      const auto on_cpu = machine.sockets[plan.home_socket(g, k)].pool;
      const std::int64_t elements = owned_range(submodel, plan.shard_of(g)).size();
      switch (submodel.state) {
        case StatePlace::cpu:
          pools[on_cpu] += {elements * whole};
          break;
        case StatePlace::resident_weights:
          pools[on_cpu] += {elements * whole};
          pools[on_gpu] += {elements * weight};
          break;
        case StatePlace::resident:
          pools[on_gpu] += {elements * whole};
          break;
        case StatePlace::nvme:
          pools[on_cpu] += {elements * weight};
          pools[machine.drives[drive_of(machine, g)].pool] += {elements * (whole - weight)};
          break;
      }
    }
    // With groups inside groups, a second communicator.
    if (plan.strategy.tensor_ways > 1 && plan.replicas() > 1) {
      pools[on_gpu] += machine.gpu_models[machine.gpus[g].model].collective_bytes.value;
    }
    // Inputs and targets, 64-bit.
    constexpr std::int64_t kBytesPerToken = 16;
    const auto beside = machine.sockets[machine.gpus[g].socket].pool;
    pools[beside] += {plan.workload.tokens_per_step() / plan.replicas() * kBytesPerToken};
  }
}

struct Change {
  double at_s = 0.0;
  std::int64_t bytes = 0;
};

// Most bytes of kept activations and running tasks' temporaries on one GPU.
Bytes most_at_once(std::vector<Change>& changes) {
  // What ends at an instant makes room for what starts then.
  std::ranges::sort(changes, [](const Change& a, const Change& b) {
    return a.at_s != b.at_s ? a.at_s < b.at_s : a.bytes < b.bytes;
  });
  std::int64_t live = 0;
  std::int64_t most = 0;
  for (const auto& change : changes) {
    live += change.bytes;
    most = std::max(most, live);
  }
  return {most};
}

}  // namespace

std::vector<Bytes> pool_peaks(const Plan& plan, const TaskGraph& graph,
                              const std::vector<TaskCost>& costs, const Trace& trace) {
  std::vector<Bytes> pools(plan.machine.pools.size());
  for (std::size_t pool = 0; pool < pools.size(); ++pool) {
    for (const auto& reserve : plan.machine.pools[pool].reserves) {
      pools[pool] += reserve.bytes.value;
    }
  }
  add_still_bytes(plan, pools);
  for (const Slot& slot : graph.slots) {
    if (slot.kind != SlotKind::kept) pools[slot.pool] += slot.bytes;
  }
  std::vector<std::vector<Change>> changes(plan.machine.gpus.size());
  for (TaskId task = 0; task < graph.size(); ++task) {
    const auto& [start, end] = trace.tasks[task];
    const std::int64_t transient = costs[task].transient.value;
    for (const EngineId engine : graph.task_engines(task)) {
      if (transient == 0 || graph.engines[engine].kind != EngineKind::compute) continue;
      auto& of_gpu = changes[graph.engines[engine].device];
      of_gpu.push_back({start.value, transient});
      of_gpu.push_back({end.value, -transient});
    }
    for (const SlotUse& use : graph.uses(task)) {
      if (use.role != SlotRole::kept) continue;
      const std::int64_t bytes = graph.slots[use.slot].bytes.value;
      changes[graph.slots[use.slot].gpu].push_back(use.acquires ? Change{start.value, bytes}
                                                                : Change{end.value, -bytes});
    }
  }
  for (std::size_t g = 0; g < changes.size(); ++g) {
    pools[plan.machine.gpus[g].pool] += most_at_once(changes[g]);
  }
  return pools;
}

}  // namespace offstage::scheduler
