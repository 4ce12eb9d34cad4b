#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exec/arena.h"
#include "exec/optimizer.h"
#include "platform/machine.h"
#include "scheduler/plan.h"
#include "scheduler/task_graph.h"

// Everything a training run holds in memory for its whole length, line by line as the plan's ledger
// has it: one capped arena for each pool, the optimizer state in CPU memory, and the slots the
// tasks work in. Nothing here knows what a task does.
namespace offstage::exec {

// One arena for each pool of the plan's machine, capped at the bytes the plan gives the run there.
class PoolArenas {
 public:
  explicit PoolArenas(const scheduler::Plan& plan);

  Arena& at(platform::PoolId pool) { return *arenas_[pool]; }
  const Arena& at(platform::PoolId pool) const { return *arenas_[pool]; }
  std::size_t size() const { return arenas_.size(); }

 private:
  std::vector<std::unique_ptr<Arena>> arenas_;  // by PoolId; arenas can't move
};

// f32 master weights and AdamW's two moments of every parameter, each in the memory of the socket
// beside the GPU whose shard it is in.
//
// Thread: calls for disjoint elements may run side by side; the task graph's edges see to it that a
// read and an update of the same element never do.
class ParameterState {
 public:
  // Fills in the initial weights. Owner: plan and arenas outlive the state.
  // Errors: Error(out_of_memory) naming pool and ledger line.
  ParameterState(const scheduler::Plan& plan, PoolArenas& arenas, std::uint64_t seed);

  // Copies master weights `range` of a sub-model's flat buffer to `out`, the borrowed ones from
  // where they are stored. Precondition: no padding in the range.
  void read_weights(std::size_t submodel, scheduler::Range range, float* out) const;

  // What GPU g's update changes. The gradient is the caller's to add.
  AdamWShard shard(std::size_t submodel, std::int64_t gpu) const;

 private:
  struct Shard {
    scheduler::Range range;  // in the sub-model's flat buffer
    Buffer memory;           // master, then m, then v
    float* master() const { return memory.floats(); }
  };

  void initialise(const Shard& shard, const scheduler::SubModel& submodel, std::uint64_t seed);
  const Shard& at(std::size_t submodel, std::int64_t gpu) const;
  void read_stored(std::size_t submodel, scheduler::Range range, float* out) const;

  const scheduler::Plan& plan_;
  std::vector<Shard> shards_;  // by sub-model, then GPU
};

// The slots of a task graph as memory. Graphs of one plan have the same slots, whatever their
// number of steps.
class Slots {
 public:
  // Errors: Error(out_of_memory) naming pool and ledger line.
  Slots(const scheduler::Plan& plan, const scheduler::TaskGraph& graph, PoolArenas& arenas);

  float* floats(scheduler::SlotId slot) const { return buffers_[slot].floats(); }
  std::size_t size() const { return buffers_.size(); }

 private:
  std::vector<Buffer> buffers_;  // by SlotId
};

// Inputs and targets of one step's micro-batches, where tasks find them.
class TokenIds {
 public:
  // Errors: Error(out_of_memory) naming pool and ledger line.
  TokenIds(const scheduler::Plan& plan, PoolArenas& arenas);

  // Shape: [sequences of a micro-batch x tokens].
  std::span<std::int64_t> inputs(std::int64_t gpu, std::int64_t micro_batch) const;
  std::span<std::int64_t> targets(std::int64_t gpu, std::int64_t micro_batch) const;

 private:
  std::span<std::int64_t> part(std::int64_t gpu, std::int64_t index) const;

  std::int64_t micro_batch_tokens_ = 0;
  std::vector<Buffer> buffers_;  // by GPU; inputs, then targets, of one micro-batch after the other
};

}  // namespace offstage::exec
