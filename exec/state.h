#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exec/arena.h"
#include "exec/device_layer.h"
#include "exec/initialise.h"
#include "exec/parameter_numbers.h"
#include "exec/planes.h"
#include "platform/machine.h"
#include "scheduler/plan.h"
#include "scheduler/task_graph.h"

// Everything a training run holds in memory for its whole length, line by line as the plan's ledger
// has it: one capped arena for each pool, the optimizer state, and the slots the tasks work in.
// Nothing here knows what a task does.
namespace offstage::exec {

// One arena for each pool of the plan's machine, capped at the bytes the plan gives the run there.
class PoolArenas {
 public:
  // devices: whose memory the pools are, GPUs' and pinned; null: all of it this computer's.
  // Owner: the devices outlive the arenas.
  explicit PoolArenas(const scheduler::Plan& plan, DeviceMemory* devices = nullptr);

  Arena& at(platform::PoolId pool) { return *arenas_[pool]; }
  const Arena& at(platform::PoolId pool) const { return *arenas_[pool]; }
  std::size_t size() const { return arenas_.size(); }

 private:
  std::vector<std::unique_ptr<Arena>> arenas_;  // by PoolId; arenas can't move
};

// A GPU's part of a sub-model's state, where its update finds it.
struct StateShard {
  scheduler::Range range;        // in the sub-model's flat buffer
  float* master = nullptr;       // in f32 trainings
  Planes master_planes = {};     // in bf16 ones; the lower one null: on NVMe, in the slot behind v
  std::byte* moments = nullptr;  // all m, then all v; null: on NVMe, passing through a slot
  // Of the range's first element among those of the GPU's slice of the model, layer after layer.
  std::int64_t first_parameter = 0;
};

// What of a parameter's state: its weight, or one of the two moments.
enum class StatePart { master, m, v };

// Parameters from number `first` on.
struct StatePiece {
  StatePart part = StatePart::master;
  std::int64_t first = 0;
};

// Elements of a sub-model's flat buffer on a GPU.
struct WeightPlace {
  std::size_t submodel = 0;
  std::int64_t gpu = 0;
  scheduler::Range range;
};

// The shard of a sub-model on NVMe with what the drive holds of it: all m, then all v, then in bf16
// trainings the lower plane of the master, as nvme_bytes (scheduler/plan_ledger.h) counts.
StateShard with_drive_state(const scheduler::Plan& plan, StateShard shard, std::byte* from_drive);

// A run's elements, counted from the first of the shard they lie in.
scheduler::Range elements_in(const StateShard& shard, const ParameterRun& run);

// Elements of a shard, counted from its first, as f32, and back, whatever they are stored as.
// Precondition: `part` is in memory.
void load_part(const scheduler::Plan& plan, const StateShard& shard, StatePart part,
               scheduler::Range elements, float* out);
void store_part(const scheduler::Plan& plan, const StateShard& shard, StatePart part,
                scheduler::Range elements, const float* values);

// Asks the source for weights `range` of a sub-model's flat buffer on a GPU, which are stored
// there; words that only fill up a cut vocabulary are 0.
void fill_weights(const scheduler::Plan& plan, const ParameterNumbers& numbers,
                  const WeightPlace& place, const WeightSource& source, float* out);

// Master weights (f32, or two planes of bf16 in bf16 trainings) and AdamW's two moments (f32 or
// bf16) of every parameter, each where the plan places it: in the memory of the socket beside the
// GPU whose shard it is in, or of that GPU. Moments and lower planes on NVMe are not here
// (nvme_store.h).
//
// Thread: calls for disjoint elements may run side by side; the task graph's edges see to it that a
// read and an update of the same element never do.
class ParameterState {
 public:
  // Fills in the initial weights; moments are 0. Owner: plan and arenas outlive the state.
  // Errors: Error(out_of_memory) naming pool and ledger line; those of the source.
  ParameterState(const scheduler::Plan& plan, PoolArenas& arenas, const WeightSource& source);

  // Copies weights of a sub-model's flat buffer on a GPU to `out` as a weight slot holds them, f32
  // or bf16, the borrowed ones from where they are stored. Precondition: no padding in the range.
  void fetch_weights(const WeightPlace& place, std::byte* out) const;

  // Elements from number `first` on of one part of the state of all the model's parameters, which
  // are numbered through (parameter_numbers.h): what checkpoints hold. As f32, which is exact for
  // whatever is stored; a moment stored as bf16 is rounded to the nearest when written. What
  // several ranks of a tensor split hold is read from the first and written to all. Precondition:
  // there are such parameters, and that part of them is not on NVMe (nvme_store.h).
  void read(StatePart part, std::int64_t first, std::span<float> out) const;
  void write(StatePart part, std::int64_t first, std::span<const float> values);

  const ParameterNumbers& numbers() const { return numbers_; }

  // What GPU g's update changes.
  StateShard shard(std::size_t submodel, std::int64_t gpu) const;

  // GPU g's shard of the weights in its own memory, as a weight slot holds them: the master, or its
  // upper plane, of a sub-model whose state is resident, the copy where its weights are.
  // Precondition: one of the two.
  const std::byte* resident_weights(std::size_t submodel, std::int64_t gpu) const;
  // Renews that copy. Precondition: the sub-model's weights are resident, not its state.
  void renew_resident_weights(std::size_t submodel, std::int64_t gpu) const;

 private:
  struct Shard {
    scheduler::Range range;
    std::int64_t first_parameter = 0;
    // Master, or upper and then lower plane; then the moments. On NVMe: what fetches read.
    Buffer memory;
    Buffer weight_copy;  // on the GPU; empty unless weights are resident
  };

  Shard make_shard(std::size_t submodel, std::int64_t gpu, PoolArenas& arenas) const;
  void initialise(std::size_t submodel, std::int64_t gpu, const WeightSource& source);
  const Shard& at(std::size_t submodel, std::int64_t gpu) const;
  void fetch_stored(const WeightPlace& place, std::byte* out) const;
  // Calls visit(shard, run of it) for what holds `parameters`.
  template <typename Visit>
  void for_runs(StatePart part, scheduler::Range parameters, const Visit& visit) const;

  const scheduler::Plan& plan_;
  const ParameterNumbers numbers_;
  const bool planes_;                // master weights are: bf16 training
  const std::int64_t weight_bytes_;  // of one as it is fetched
  std::vector<Shard> shards_;        // by sub-model, then GPU
};

// The slots of a task graph as memory. Graphs of one plan have the same slots, whatever their
// number of steps.
class Slots {
 public:
  // Errors: Error(out_of_memory) naming pool and ledger line.
  Slots(const scheduler::Plan& plan, const scheduler::TaskGraph& graph, PoolArenas& arenas);

  // Precondition of both: the slot is a buffer, as all but those of kept activations are.
  float* floats(scheduler::SlotId slot) const { return buffers_[slot].floats(); }
  std::byte* bytes(scheduler::SlotId slot) const { return buffers_[slot].data(); }
  std::size_t size() const { return buffers_.size(); }

 private:
  std::vector<Buffer> buffers_;  // by SlotId; empty for kept activations, which are tensors
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
