#pragma once

#include "scheduler/ledger.h"
#include "scheduler/plan.h"
#include "scheduler/task_graph.h"
#include "scheduler/working_memory.h"

// The bytes behind a plan: how many slots of which size each GPU has, and the ledger that adds them
// to everything else. The task graph takes its slots from here, so that ledger and graph agree.
namespace offstage::scheduler {

// The slots of one GPU: on it, and in the memory of its socket.
struct SlotCounts {
  std::uint32_t weights = 0, gradients = 0, activation = 0;
  std::uint32_t host_gradients = 0, host_activation = 0, host_nvme = 0;
  // Whether the last host gradient slot is set aside for a tied head, whose gradients wait until
  // the embedding's are there too.
  bool tied_gradients = false;
};
SlotCounts slot_counts(const Plan& plan, std::size_t gpu);

// Bytes of one slot. `index` matters for host gradients only (the tied head's is its own size).
// Precondition: not SlotKind::kept, whose size is the sub-model's (compute_memory).
platform::Bytes slot_bytes(const Plan& plan, SlotKind kind, std::uint32_t index);

// The pool of one slot. Host gradients, and NVMe state passing through, stay beside the GPU.
platform::PoolId slot_pool(const Plan& plan, std::size_t gpu, SlotKind kind, std::uint32_t index);

// The drive that holds a GPU's NVMe state. Precondition: the machine has drives.
std::size_t drive_of(const platform::Machine& machine, std::size_t gpu);

// Bytes of one parameter's state that an NVMe sub-model has on its drive; the rest, its weights, is
// in CPU memory.
std::int64_t nvme_bytes(const Plan& plan);

// What a sub-model's compute tasks take beside the slots: its layers' temporaries, and on virtual
// GPUs what widening takes (working_memory.h).
ComputeMemory task_memory(const Plan& plan, const SubModel& submodel);

// Whether forward and backward of a sub-model read its weights from a slot: not where one GPU has
// them resident.
bool uses_weight_slot(const Plan& plan, const SubModel& submodel);

// Reads everything of the plan but `memory`.
Ledger make_ledger(const Plan& plan);

}  // namespace offstage::scheduler
