#include "scheduler/plan_ledger.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "platform/error.h"
#include "platform/format.h"

namespace offstage::scheduler {
namespace {

using platform::Bytes;
using platform::to_text;

// Token ids are 64-bit: inputs and targets.
constexpr std::int64_t kTokenBytes = 2 * 8;

// Of the sub-models for which `counts` holds, the largest shard.
template <typename Counts>
std::int64_t largest_shard(const Plan& plan, const Counts& counts) {
  std::int64_t largest = 0;
  for (const auto& submodel : plan.submodels) {
    if (counts(submodel)) largest = std::max(largest, submodel.shard_elements);
  }
  return largest;
}

bool is_tied_head(const Plan& plan, const SubModel& submodel) {
  return &submodel == &plan.submodels.back() && submodel.borrowed > 0;
}

// Whether its gradients pass through the ring of host gradient slots.
bool uses_host_ring(const Plan& plan, const SubModel& submodel) {
  return submodel.state != StatePlace::resident && !is_tied_head(plan, submodel);
}

// The same pack of the same layers is worked out once.
std::vector<ComputeMemory> submodel_memory(const Plan& plan) {
  const auto& layers = plan.table.layers;
  const auto alike = [&layers](const SubModel& a, const SubModel& b) {
    return a.keeps_activations == b.keeps_activations &&
           std::equal(layers.begin() + static_cast<std::ptrdiff_t>(a.first_layer),
                      layers.begin() + static_cast<std::ptrdiff_t>(a.end_layer),
                      layers.begin() + static_cast<std::ptrdiff_t>(b.first_layer),
                      layers.begin() + static_cast<std::ptrdiff_t>(b.end_layer));
  };
  std::vector<ComputeMemory> memory;
  for (std::size_t k = 0; k < plan.submodels.size(); ++k) {
    const SubModel& submodel = plan.submodels[k];
    if (k > 0 && alike(submodel, plan.submodels[k - 1])) {
      memory.push_back(memory.back());
    } else {
      memory.push_back(task_memory(plan, submodel));
    }
  }
  return memory;
}

// What compute tasks take on a GPU beside the slots: the temporaries of the largest one alone, and
// the most that temporaries and kept activations ever take together. Under the `planned` policy
// that follows from program order; under others any task may meet everything kept. On a GPU that
// runs so many micro-batches.
struct Transients {
  Bytes working, together;
};

Transients transients(const Plan& plan, const std::vector<ComputeMemory>& memory,
                      std::int64_t micro_batches) {
  const std::size_t last = plan.submodels.size() - 1;
  Transients most;
  Bytes live;  // kept so far
  // The head, which is last, runs forward and backward in one task.
  for (std::size_t k = 0; k < last; ++k) {
    most.working = std::max(most.working, memory[k].forward);
    live += memory[k].kept * micro_batches;
    most.together = std::max(most.together, live + memory[k].forward);
  }
  const Bytes all_kept = live;
  for (std::size_t k = last + 1; k-- > 0;) {
    most.working = std::max(most.working, memory[k].backward);
    most.together = std::max(most.together, live + memory[k].backward);
    live -= memory[k].kept * micro_batches;
  }
  if (plan.strategy.policy != PolicyKind::planned) most.together = all_kept + most.working;
  return most;
}

// Elements of GPU g's shards, in the sub-models at `place`; of those whose home is `socket`, where
// that matters.
std::int64_t owned_elements(const Plan& plan, std::size_t gpu, StatePlace place,
                            std::optional<std::size_t> socket = std::nullopt) {
  std::int64_t owned = 0;
  for (std::size_t k = 0; k < plan.submodels.size(); ++k) {
    const auto& submodel = plan.submodels[k];
    if (submodel.state != place || (socket && plan.home_socket(gpu, k) != *socket)) continue;
    owned += owned_range(submodel, plan.shard_of(gpu)).size();
  }
  return owned;
}

LedgerLine slots_line(const Plan& plan, SlotKind kind, std::uint32_t count, const std::string& what,
                      const std::string& knob) {
  const Bytes each = slot_bytes(plan, kind, 0);
  return {what, each * count, fmt::format("{} x {}", count, to_text(each)), knob};
}

// A line for `elements` parameters, unless there are none.
void add_state_line(PoolLedger& pool, const std::string& what, std::int64_t elements,
                    std::int64_t bytes_each, const std::string& knob) {
  if (elements == 0) return;
  pool.lines.push_back({what, Bytes{elements * bytes_each},
                        fmt::format("{} parameters x {} B", elements, bytes_each), knob, false,
                        true});
}

void add_gpu_lines(const Plan& plan, std::size_t gpu, const Transients& most, PoolLedger& pool) {
  const auto counts = slot_counts(plan, gpu);
  const auto& strategy = plan.strategy;
  pool.lines.push_back(
      slots_line(plan, SlotKind::weights, counts.weights, "weight slots", "weight_slots"));
  pool.lines.push_back(
      slots_line(plan, SlotKind::gradients, counts.gradients, "gradient slots", "gradient_slots"));
  pool.lines.push_back(slots_line(plan, SlotKind::activation, counts.activation,
                                  "boundary activations", "activations"));
  add_state_line(pool, "resident state", owned_elements(plan, gpu, StatePlace::resident),
                 state_bytes(strategy.moments), "resident_state");
  add_state_line(pool, "resident weights", owned_elements(plan, gpu, StatePlace::resident_weights),
                 element_bytes(plan.workload.precision).weight, "resident_weights");
  if (!plan.group_routes.empty() && plan.replicas() > 1) {
    const auto& model = plan.machine.gpu_models[plan.machine.gpus[gpu].model];
    pool.lines.push_back({"group collectives", model.collective_bytes.value,
                          "a second communicator's buffers", "tensor_ways"});
  }
  pool.lines.push_back({"working space", most.working,
                        fmt::format("largest sub-model, micro-batch of {} x {} tokens",
                                    strategy.micro_batch, plan.workload.sequence_length),
                        "micro_batch"});
  if (strategy.kept_activations > 0) {
    pool.lines.push_back({"kept activations", most.together - most.working,
                          fmt::format("{} sub-models, {} micro-batches, beyond the working space",
                                      strategy.kept_activations, plan.micro_batches(gpu)),
                          "kept_activations"});
  }
}

void add_host_gradient_lines(const Plan& plan, std::size_t gpu, PoolLedger& pool) {
  const auto counts = slot_counts(plan, gpu);
  const auto& name = plan.machine.gpus[gpu].name;
  const std::uint32_t ring = counts.host_gradients - (counts.tied_gradients ? 1 : 0);
  const bool all = plan.strategy.clipping == Clipping::exact;
  pool.lines.push_back(slots_line(plan, SlotKind::host_gradients, ring, "gradient slots of " + name,
                                  all ? "clipping" : "host_gradient_slots"));
  if (!counts.tied_gradients) return;
  pool.lines.push_back({"tied head's gradient of " + name,
                        slot_bytes(plan, SlotKind::host_gradients, ring),
                        "waits for the embedding's", ""});
}

// Of one GPU's host activation slots, those in the memory of a socket (slot_pool deals them out).
std::uint32_t waiting_activations(const Plan& plan, std::size_t gpu, std::size_t socket) {
  const std::uint32_t all = slot_counts(plan, gpu).host_activation;
  const std::size_t own = plan.machine.gpus[gpu].socket;
  if (plan.strategy.host_memory == HostMemory::near) return socket == own ? all : 0;
  const std::size_t sockets = plan.machine.sockets.size();
  const std::size_t turn = (socket + sockets - own) % sockets;
  return static_cast<std::uint32_t>(all / sockets + (turn < all % sockets ? 1 : 0));
}

// What one GPU keeps in the memory of a socket.
void add_host_lines(const Plan& plan, std::size_t gpu, std::size_t socket, PoolLedger& pool) {
  const auto counts = slot_counts(plan, gpu);
  const auto& name = plan.machine.gpus[gpu].name;
  const std::int64_t whole = state_bytes(plan.strategy.moments);
  add_state_line(pool, "state of " + name,
                 owned_elements(plan, gpu, StatePlace::cpu, socket) +
                     owned_elements(plan, gpu, StatePlace::resident_weights, socket),
                 whole, "resident_state");
  add_state_line(pool, "weights of NVMe state of " + name,
                 owned_elements(plan, gpu, StatePlace::nvme, socket), whole - nvme_bytes(plan),
                 "nvme_state");
  const std::uint32_t activations = waiting_activations(plan, gpu, socket);
  if (activations > 0) {
    pool.lines.push_back(slots_line(plan, SlotKind::host_activation, activations,
                                    "activations of " + name, "activations"));
  }
  if (plan.machine.gpus[gpu].socket != socket) return;
  if (counts.host_nvme > 0) {
    pool.lines.push_back(slots_line(plan, SlotKind::host_nvme, counts.host_nvme,
                                    "NVMe slots of " + name, "nvme_slots"));
  }
  add_host_gradient_lines(plan, gpu, pool);
  const std::int64_t tokens =
      plan.micro_batches(gpu) * plan.strategy.micro_batch * plan.workload.sequence_length;
  pool.lines.push_back({"token ids of " + name, Bytes{tokens * kTokenBytes},
                        fmt::format("{} tokens x {} B", tokens, kTokenBytes), ""});
}

// `most` by GPU.
PoolLedger make_pool(const Plan& plan, const std::vector<Transients>& most, platform::PoolId id) {
  const auto& machine = plan.machine;
  PoolLedger pool{id, machine.pools[id].name, machine.pools[id].capacity.value, {}};
  for (const auto& reserve : machine.pools[id].reserves) {
    pool.lines.push_back({reserve.what, reserve.bytes.value, "taken by the system", "", true});
  }
  for (std::size_t gpu = 0; gpu < machine.gpus.size(); ++gpu) {
    const auto& name = machine.gpus[gpu].name;
    if (machine.gpus[gpu].pool == id) add_gpu_lines(plan, gpu, most[gpu], pool);
    for (std::size_t socket = 0; socket < machine.sockets.size(); ++socket) {
      if (machine.sockets[socket].pool == id) add_host_lines(plan, gpu, socket, pool);
    }
    if (!machine.drives.empty() && machine.drives[drive_of(machine, gpu)].pool == id) {
      add_state_line(pool, "NVMe state of " + name, owned_elements(plan, gpu, StatePlace::nvme),
                     nvme_bytes(plan), "nvme_state");
    }
  }
  return pool;
}

}  // namespace

ComputeMemory task_memory(const Plan& plan, const SubModel& submodel) {
  const std::size_t first = submodel.first_layer, end = submodel.end_layer;
  ComputeMemory memory = compute_memory(plan.table, first, end, submodel.keeps_activations);
  if (compute_precision(plan.machine, plan.workload) != plan.workload.precision) {
    const Bytes widened = widened_bytes(plan.table, first, end, submodel.moved());
    memory.forward += widened;
    memory.backward += widened;
  }
  return memory;
}

platform::PoolId slot_pool(const Plan& plan, std::size_t gpu, SlotKind kind, std::uint32_t index) {
  const auto& machine = plan.machine;
  const std::size_t own = machine.gpus[gpu].socket;
  switch (kind) {
    case SlotKind::weights:
    case SlotKind::gradients:
    case SlotKind::activation:
    case SlotKind::kept:
      return machine.gpus[gpu].pool;
    case SlotKind::host_activation:
      if (plan.strategy.host_memory == HostMemory::all) {
        return machine.sockets[(own + index) % machine.sockets.size()].pool;
      }
      break;
    case SlotKind::host_gradients:
    case SlotKind::host_nvme:
      break;
  }
  return machine.sockets[own].pool;
}

std::size_t drive_of(const platform::Machine& machine, std::size_t gpu) {
  return gpu * machine.drives.size() / machine.gpus.size();
}

std::int64_t nvme_bytes(const Plan& plan) {
  return state_bytes(plan.strategy.moments) - element_bytes(plan.workload.precision).weight;
}

bool uses_weight_slot(const Plan& plan, const SubModel& submodel) {
  const bool on_gpu =
      submodel.state == StatePlace::resident || submodel.state == StatePlace::resident_weights;
  return plan.replicas() > 1 || !on_gpu;
}

SlotCounts slot_counts(const Plan& plan, std::size_t gpu) {
  const auto micro_batches = static_cast<std::uint32_t>(plan.micro_batches(gpu));
  const auto submodels = static_cast<std::uint32_t>(plan.submodels.size());
  const auto& strategy = plan.strategy;
  const auto kept = static_cast<std::uint32_t>(strategy.kept_activations);
  SlotCounts counts;
  counts.weights = static_cast<std::uint32_t>(strategy.weight_slots);
  counts.gradients = static_cast<std::uint32_t>(strategy.gradient_slots);
  counts.tied_gradients = plan.submodels.back().borrowed > 0;
  counts.host_gradients = static_cast<std::uint32_t>(strategy.host_gradient_slots);
  if (strategy.clipping == Clipping::exact) {
    counts.host_gradients = submodels - (counts.tied_gradients ? 1 : 0);
  }
  counts.host_gradients += counts.tied_gradients ? 1 : 0;
  counts.host_nvme = strategy.nvme_state > 0 ? static_cast<std::uint32_t>(strategy.nvme_slots) : 0;
  if (strategy.activations == ActivationPlace::gpu) {
    counts.activation = (submodels - 1) * micro_batches;
  } else {
    // A sub-model that keeps its activations keeps its input too. The last boundary is consumed
    // where it was made, at the turn from forward to backward.
    counts.activation =
        (kept + 1) * micro_batches + static_cast<std::uint32_t>(strategy.spare_activation_slots);
    counts.host_activation = (submodels - 2 - kept) * micro_batches;
  }
  return counts;
}

Bytes slot_bytes(const Plan& plan, SlotKind kind, std::uint32_t index) {
  const auto element = element_bytes(plan.workload.precision);
  const auto all = [](const SubModel&) { return true; };
  switch (kind) {
    case SlotKind::weights: {
      const auto fetched = [&](const SubModel& s) { return uses_weight_slot(plan, s); };
      return {largest_shard(plan, fetched) * plan.replicas() * element.weight};
    }
    case SlotKind::gradients:
      return {largest_shard(plan, all) * plan.replicas() * element.gradient};
    case SlotKind::host_gradients: {
      const auto counts = slot_counts(plan, 0);  // every GPU has as many of these
      const bool tied = counts.tied_gradients && index + 1 == counts.host_gradients;
      const auto in_ring = [&](const SubModel& s) { return uses_host_ring(plan, s); };
      const std::int64_t elements =
          tied ? plan.submodels.back().shard_elements : largest_shard(plan, in_ring);
      return {elements * element.sent_gradient};
    }
    case SlotKind::host_nvme: {
      const auto on_nvme = [](const SubModel& s) { return s.state == StatePlace::nvme; };
      return {largest_shard(plan, on_nvme) * nvme_bytes(plan)};
    }
    case SlotKind::activation:
    case SlotKind::host_activation:
      return plan.boundary_bytes();
    case SlotKind::kept:
      break;
  }
  OFFSTAGE_CHECK(false, "kept activations have the size of their sub-model's");
  return {};
}

Ledger make_ledger(const Plan& plan) {
  Ledger ledger;
  const auto memory = submodel_memory(plan);
  std::vector<Transients> most;
  for (std::size_t gpu = 0; gpu < plan.machine.gpus.size(); ++gpu) {
    const bool alike = gpu > 0 && plan.micro_batches(gpu) == plan.micro_batches(gpu - 1);
    most.push_back(alike ? most.back() : transients(plan, memory, plan.micro_batches(gpu)));
  }
  for (platform::PoolId id = 0; id < plan.machine.pools.size(); ++id) {
    ledger.pools.push_back(make_pool(plan, most, id));
  }
  return ledger;
}

}  // namespace offstage::scheduler
