#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "platform/machine.h"
#include "platform/units.h"

// The work of some training steps as tasks, the engines that run them, the slots they use, and who
// waits for whom. Compact: a 175B step is some 20,000 tasks. Task ids follow program order, which
// is a topological order: a task's predecessors have smaller ids.
namespace offstage::scheduler {

using TaskId = std::uint32_t;
using EngineId = std::uint16_t;
using SlotId = std::uint32_t;

enum class TaskKind : std::uint8_t {
  fetch,
  offload,
  all_gather,
  reduce_scatter,
  all_reduce,
  forward,
  backward,
  update,
  norm,
  read,
  write,
  send,  // from one GPU to another
};
constexpr std::size_t kTaskKinds = 12;
std::string_view to_string(TaskKind kind);

enum class Payload : std::uint8_t { none, weights, gradients, activations };

enum class EngineKind : std::uint8_t {
  compute,
  h2d,
  d2h,
  collective,
  optimizer,
  nvme_read,
  nvme_write,
  network,  // of this host, to the others
};

// Runs its tasks one at a time, in submission order.
struct Engine {
  std::string name;  // "gpu0.compute", "socket1.optimizer"
  EngineKind kind = EngineKind::compute;
  std::uint16_t device = 0;  // GPU, or socket for optimizer engines
};

// A buffer of fixed size, in one pool for the whole run, used by one occupant after the other.
enum class SlotKind : std::uint8_t {
  weights,          // a sub-model's flat weights on a GPU
  gradients,        // a sub-model's flat gradients on a GPU
  activation,       // a boundary activation (or its gradient) on a GPU
  host_gradients,   // a GPU's shard of a sub-model's gradients, in CPU memory
  host_activation,  // a boundary activation in CPU memory
  host_nvme,        // a GPU's shard of a sub-model's NVMe state, passing through CPU memory
  kept,             // what a forward keeps for its backward, on a GPU: taken while occupied only,
                    // not for the whole run
};
std::string_view to_string(SlotKind kind);

struct Slot {
  SlotKind kind = SlotKind::weights;
  platform::PoolId pool = 0;
  std::uint16_t gpu = 0;    // whose it is
  std::uint32_t index = 0;  // among the GPU's slots of this kind
  platform::Bytes bytes;
};

// What a task does with a slot.
enum class SlotRole : std::uint8_t {
  weights,    // fetch, all_gather write; forward, backward read
  gradients,  // backward accumulates; reduce_scatter reduces in place; offload reads
  input,      // boundary activation read by forward, backward; source or target of a copy
  output,     // boundary activation written by forward; target of a fetch; source of an offload
  output_gradient,  // read by backward; its input gradient goes into `input`
  host,             // the CPU side of a copy, or what an update or norm reads (and writes) there
  kept,             // written by forward, read by backward
};

struct SlotUse {
  SlotId slot = 0;
  SlotRole role = SlotRole::weights;
  bool acquires = false;  // first task of an occupant
  bool releases = false;  // a last task of an occupant (several may be: all must be done)
};

struct Task {
  TaskKind kind = TaskKind::fetch;
  Payload payload = Payload::none;
  std::uint16_t gpu = 0;  // the GPU it works for (lowest one of a collective)
  std::uint16_t submodel = 0;
  std::uint16_t socket = 0;       // whose memory a copy's CPU side is in; who updates
  std::uint32_t step = 0;         // from 0, within the graph
  std::uint32_t micro_batch = 0;  // forward, backward and activation copies only
  platform::Bytes bytes;          // moved by copies; total buffer of collectives
  std::int64_t elements = 0;      // parameters changed by an update
};

class TaskGraph {
 public:
  std::vector<Engine> engines;
  std::vector<Slot> slots;
  std::vector<Task> tasks;
  std::uint32_t steps = 0;
  std::int64_t first_step = 0;  // what describe() calls the first of them

  std::size_t size() const { return tasks.size(); }
  std::span<const TaskId> predecessors(TaskId task) const;
  std::span<const TaskId> successors(TaskId task) const;      // after finish()
  std::span<const EngineId> task_engines(TaskId task) const;  // collectives hold several
  std::span<const SlotUse> uses(TaskId task) const;

  // "backward submodel 3 micro-batch 1 gpu0 step 2"
  std::string describe(TaskId task) const;
  bool has_micro_batch(TaskId task) const;

  // Building: append in program order, then finish() once. Predecessors must be earlier tasks;
  // repeated ones are kept once.
  TaskId add(const Task& task, std::span<const EngineId> engines,
             std::span<const TaskId> predecessors, std::span<const SlotUse> uses);
  void finish();

 private:
  std::vector<std::uint32_t> predecessor_begin_{0}, engine_begin_{0}, use_begin_{0};
  std::vector<std::uint32_t> successor_begin_;
  std::vector<TaskId> predecessors_, successors_;
  std::vector<EngineId> task_engines_;
  std::vector<SlotUse> uses_;
};

}  // namespace offstage::scheduler
