#pragma once

#include "scheduler/ledger.h"
#include "scheduler/plan.h"
#include "scheduler/task_graph.h"

// The bytes behind a plan: how many slots of which size each GPU has, and the ledger that adds them
// to everything else. The task graph takes its slots from here, so that ledger and graph agree.
namespace offstage::scheduler {

// The slots of one GPU: on it, and in the memory of its socket.
struct SlotCounts {
  std::uint32_t weights = 0, gradients = 0, activation = 0;
  std::uint32_t host_gradients = 0, host_activation = 0;
  // Whether the last host gradient slot is set aside for a tied head, whose gradients wait until
  // the embedding's are there too.
  bool tied_gradients = false;
};
SlotCounts slot_counts(const Plan& plan);

// Bytes of one slot. `index` matters for host gradients only (the tied head's is its own size).
platform::Bytes slot_bytes(const Plan& plan, SlotKind kind, std::uint32_t index);

// Working memory of the largest compute task.
platform::Bytes working_bytes(const Plan& plan);

// Reads everything of the plan but `memory`.
Ledger make_ledger(const Plan& plan);

// CPU state of one parameter: bf16 `hi` and 16-bit `lo` planes of the fp32 master (or the master
// itself), fp32 first and second moments.
constexpr std::int64_t kStateBytesPerParameter = 12;

}  // namespace offstage::scheduler
