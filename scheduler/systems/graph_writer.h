#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "platform/machine.h"
#include "platform/units.h"
#include "scheduler/cost_model.h"
#include "scheduler/profile.h"
#include "scheduler/systems/layer_costs.h"
#include "scheduler/systems/system_plan.h"
#include "scheduler/task_graph.h"

// Writes a published system's step as tasks with their costs. Each system's file says which task
// waits for which; what a task costs and which engines it holds is decided here, once for all.
//
//   GraphWriter writer(plan, profile);
//   const TaskId forward = writer.forward({gpu}, {k, k + 1}, micro_batch, {gathered});
//   return writer.take();
//
// Tasks are added in program order: an engine runs its tasks in the order in which they were added,
// and a task waits for earlier ones only.
namespace offstage::scheduler::systems {

using Gpus = std::vector<std::size_t>;
using After = std::vector<TaskId>;

// Whether a collective or copy leaves the GPUs' compute engines to others meanwhile.
enum class Beside { compute, nothing };

struct Copy {
  TaskKind kind = TaskKind::fetch;
  Payload payload = Payload::weights;
  std::size_t gpu = 0;
  platform::Bytes bytes;
  Beside beside = Beside::compute;
};

class GraphWriter {
 public:
  GraphWriter(const SystemPlan& plan, const Profile& profile);

  // One micro-batch through layers, on all tensor ranks of a data rank and stage together.
  TaskId forward(const Gpus& ranks, LayerRange layers, std::uint32_t micro_batch,
                 const After& after);
  TaskId backward(const Gpus& ranks, LayerRange layers, std::uint32_t micro_batch,
                  const After& after);

  // Among GPUs, over `bytes` of the whole buffer. With one GPU it takes no time.
  TaskId collective(TaskKind kind, Payload payload, const Gpus& gpus, platform::Bytes bytes,
                    Beside beside, const After& after);
  // A boundary activation from each of `from` to its partner in `to`.
  TaskId send(const Gpus& from, const Gpus& to, platform::Bytes bytes, const After& after);

  // fetch or offload over PCIe, between a GPU and the memory of its own socket. Where the memory is
  // not pinned the process waits for it, and gives the GPU nothing else to do.
  TaskId copy(const Copy& copy, const After& after);
  // read or write of state on the drive of a GPU, to or from the memory of its socket.
  TaskId drive(TaskKind kind, std::size_t gpu, platform::Bytes bytes, const After& after);

  // An optimizer's pass over so many parameters: on the GPU that holds them, or by its process's
  // cores of the socket beside it; processes share the socket's memory.
  TaskId update_on_gpu(std::size_t gpu, std::int64_t elements, const After& after);
  TaskId update_on_cpu(std::size_t gpu, std::int64_t elements, const After& after);

  // Time on a GPU's compute engine for what no layer and no table stands for.
  TaskId hold(std::size_t gpu, TaskKind kind, platform::Seconds seconds, const After& after);

  CostedGraph take();

 private:
  struct Engines {
    EngineId compute, h2d, d2h, collective, nvme_read, nvme_write, optimizer;
  };
  EngineId add_engine(const std::string& name, EngineKind kind, std::size_t device);
  TaskId add(const Task& task, const std::vector<EngineId>& engines, const After& after,
             const TaskCost& cost);
  TaskId pass(TaskKind kind, const Gpus& ranks, LayerRange layers, std::uint32_t micro_batch,
              const After& after);
  Task make_task(TaskKind kind, Payload payload, std::size_t gpu) const;

  const SystemPlan& plan_;
  const Profile& profile_;
  LayerCosts costs_of_layers_;
  TaskGraph graph_;
  std::vector<TaskCost> costs_;
  std::vector<Engines> engines_;  // by GPU
};

}  // namespace offstage::scheduler::systems
