#include "scheduler/plan_ledger.h"

#include <algorithm>

#include <fmt/format.h>

#include "platform/format.h"
#include "scheduler/working_memory.h"

namespace offstage::scheduler {
namespace {

using platform::Bytes;
using platform::to_text;

// Token ids are 64-bit: inputs and targets.
constexpr std::int64_t kTokenBytes = 2 * 8;

std::int64_t largest_shard(const Plan& plan, bool with_head) {
  std::int64_t largest = 0;
  const std::size_t count = plan.submodels.size() - (with_head ? 0 : 1);
  for (std::size_t k = 0; k < count; ++k) {
    largest = std::max(largest, plan.submodels[k].shard_elements);
  }
  return largest;
}

LedgerLine slots_line(const Plan& plan, SlotKind kind, std::uint32_t count, const std::string& what,
                      const std::string& knob) {
  const Bytes each = slot_bytes(plan, kind, 0);
  return {what, each * count, fmt::format("{} x {}", count, to_text(each)), knob};
}

void add_gpu_lines(const Plan& plan, PoolLedger& pool) {
  const auto counts = slot_counts(plan);
  pool.lines.push_back(
      slots_line(plan, SlotKind::weights, counts.weights, "weight slots", "weight_slots"));
  pool.lines.push_back(
      slots_line(plan, SlotKind::gradients, counts.gradients, "gradient slots", "gradient_slots"));
  pool.lines.push_back(slots_line(plan, SlotKind::activation, counts.activation,
                                  "boundary activations", "activations"));
  pool.lines.push_back({"working space", working_bytes(plan),
                        fmt::format("largest sub-model, micro-batch of {} x {} tokens",
                                    plan.strategy.micro_batch, plan.workload.sequence_length),
                        "micro_batch"});
}

// What one GPU keeps in the memory of its socket.
void add_host_lines(const Plan& plan, std::size_t gpu, PoolLedger& pool) {
  const auto counts = slot_counts(plan);
  const auto& name = plan.machine.gpus[gpu].name;
  std::int64_t owned = 0;
  for (const auto& submodel : plan.submodels) {
    owned += owned_range(submodel, static_cast<std::int64_t>(gpu)).size();
  }
  pool.lines.push_back({"state of " + name, Bytes{owned * kStateBytesPerParameter},
                        fmt::format("{} parameters x {} B", owned, kStateBytesPerParameter), ""});
  const std::uint32_t ring = counts.host_gradients - (counts.tied_gradients ? 1 : 0);
  pool.lines.push_back(slots_line(plan, SlotKind::host_gradients, ring, "gradient slots of " + name,
                                  "host_gradient_slots"));
  if (counts.tied_gradients) {
    pool.lines.push_back({"tied head's gradient of " + name,
                          slot_bytes(plan, SlotKind::host_gradients, ring),
                          "waits for the embedding's", ""});
  }
  if (counts.host_activation > 0) {
    pool.lines.push_back(slots_line(plan, SlotKind::host_activation, counts.host_activation,
                                    "activations of " + name, "activations"));
  }
  const std::int64_t tokens = plan.workload.tokens_per_step() / plan.gpus();
  pool.lines.push_back({"token ids of " + name, Bytes{tokens * kTokenBytes},
                        fmt::format("{} tokens x {} B", tokens, kTokenBytes), ""});
}

}  // namespace

SlotCounts slot_counts(const Plan& plan) {
  const auto micro_batches = static_cast<std::uint32_t>(plan.micro_batches());
  const auto submodels = static_cast<std::uint32_t>(plan.submodels.size());
  const auto& strategy = plan.strategy;
  SlotCounts counts;
  counts.weights = static_cast<std::uint32_t>(strategy.weight_slots);
  counts.gradients = static_cast<std::uint32_t>(strategy.gradient_slots);
  counts.tied_gradients = plan.submodels.back().borrowed > 0;
  counts.host_gradients =
      static_cast<std::uint32_t>(strategy.host_gradient_slots) + (counts.tied_gradients ? 1 : 0);
  if (strategy.activations == ActivationPlace::gpu) {
    counts.activation = (submodels - 1) * micro_batches;
  } else {
    counts.activation = micro_batches + static_cast<std::uint32_t>(strategy.spare_activation_slots);
    // The last boundary is consumed where it was made, at the turn from forward to backward.
    counts.host_activation = (submodels - 2) * micro_batches;
  }
  return counts;
}

Bytes slot_bytes(const Plan& plan, SlotKind kind, std::uint32_t index) {
  const auto element = element_bytes(plan.workload.precision);
  const auto counts = slot_counts(plan);
  switch (kind) {
    case SlotKind::weights:
      return {largest_shard(plan, true) * plan.gpus() * element.weight};
    case SlotKind::gradients:
      return {largest_shard(plan, true) * plan.gpus() * element.gradient};
    case SlotKind::host_gradients: {
      const bool tied = counts.tied_gradients && index + 1 == counts.host_gradients;
      const std::int64_t elements =
          tied ? plan.submodels.back().shard_elements : largest_shard(plan, !counts.tied_gradients);
      return {elements * element.sent_gradient};
    }
    case SlotKind::activation:
    case SlotKind::host_activation:
      return plan.boundary_bytes();
  }
  return {};
}

Bytes working_bytes(const Plan& plan) {
  Bytes largest;
  for (std::size_t k = 0; k < plan.submodels.size(); ++k) {
    const auto& submodel = plan.submodels[k];
    // The head runs forward and backward in one task.
    if (k + 1 < plan.submodels.size()) {
      largest = std::max(
          largest, submodel_forward_bytes(plan.table, submodel.first_layer, submodel.end_layer));
    }
    largest = std::max(
        largest, submodel_backward_bytes(plan.table, submodel.first_layer, submodel.end_layer));
  }
  return largest;
}

Ledger make_ledger(const Plan& plan) {
  Ledger ledger;
  for (platform::PoolId id = 0; id < plan.machine.pools.size(); ++id) {
    const auto& pool = plan.machine.pools[id];
    PoolLedger lines{id, pool.name, pool.capacity.value, {}};
    for (const auto& reserve : pool.reserves) {
      lines.lines.push_back({reserve.what, reserve.bytes.value, "taken by the system", "", true});
    }
    for (std::size_t gpu = 0; gpu < plan.machine.gpus.size(); ++gpu) {
      if (plan.machine.gpus[gpu].pool == id) add_gpu_lines(plan, lines);
    }
    for (std::size_t gpu = 0; gpu < plan.machine.gpus.size(); ++gpu) {
      const auto& socket = plan.machine.sockets[plan.machine.gpus[gpu].socket];
      if (socket.pool == id) add_host_lines(plan, gpu, lines);
    }
    ledger.pools.push_back(std::move(lines));
  }
  return ledger;
}

}  // namespace offstage::scheduler
