#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform/machine.h"
#include "platform/units.h"
#include "scheduler/ledger.h"
#include "scheduler/strategy.h"
#include "workloads/layer_table.h"
#include "workloads/workload.h"

// A plan: how a workload is cut, what every byte of every pool is for, and the knobs that fix the
// order of work. Computed once; the task graph both backends run is derived from it alone
// (step_graph.h). plan_file.h writes it as JSON and reads it back.
namespace offstage::scheduler {

// Where a sub-model's weights and optimizer state live.
enum class StatePlace {
  cpu,               // in CPU memory, updated by the socket beside the GPU
  resident_weights,  // as cpu, and a copy of the weights' shard on the GPU, renewed once a step
  resident,          // on the GPUs, each its shard, updated there
  nvme,              // weights in CPU memory; moments and low plane on NVMe, passing through
};

// Consecutive layers that cross PCIe together. Its weights are one flat buffer: the borrowed matrix
// (if any) first, then the tensors of its layers in layer-table order, then padding to a multiple
// of replicas x kShardAlignment elements. With a tensor split every rank of a group has a buffer
// like this of its own slice of the tensors, and all sizes here are those of one slice. GPU g moves
// and owns the (g / tensor_ways)-th equal part, its shard.
struct SubModel {
  std::size_t first_layer = 0;      // in the layer table; layer 0 is the embedding
  std::size_t end_layer = 0;        // one past the last
  std::int64_t parameters = 0;      // stored and updated here
  std::int64_t borrowed = 0;        // of sub-model 0's word embedding, used by a tied head: moved
                                    // with this sub-model, updated with sub-model 0
  std::int64_t shard_elements = 0;  // of one GPU, padding included
  StatePlace state = StatePlace::cpu;
  bool keeps_activations = false;  // from its forward to its backward, instead of recomputing

  std::int64_t moved() const { return parameters + borrowed; }
};

// Elements: a shard starts on a 64-byte line in every element type from 16 bits up.
constexpr std::int64_t kShardAlignment = 32;

struct Plan {
  platform::Machine machine;
  workloads::Workload workload;
  // Of one rank's slice, at strategy.micro_batch, in the precision it is computed in.
  workloads::LayerTable table;
  Strategy strategy;
  std::vector<SubModel> submodels;  // first: the embedding; last: final norm, head and loss
  Ledger memory;
  std::vector<std::string> reasons;  // a sentence for each decision
  // Of all-reduces among the GPUs of each group; empty without a tensor split.
  std::vector<platform::RouteId> group_routes;

  std::int64_t gpus() const { return static_cast<std::int64_t>(machine.gpus.size()); }
  // Groups of GPUs that share the batch: all GPUs, unless there is a tensor split.
  std::int64_t replicas() const { return gpus() / strategy.tensor_ways; }
  // Which part of a flat buffer a GPU moves and owns.
  std::int64_t shard_of(std::size_t gpu) const {
    return static_cast<std::int64_t>(gpu) / strategy.tensor_ways;
  }
  // The socket whose memory holds what a GPU keeps of a sub-model on the CPU, and whose cores
  // update it (Strategy::host_memory).
  std::size_t home_socket(std::size_t gpu, std::size_t submodel) const;
  // Of the machine's hosts each carries out this plan on its own share of the batch.
  std::int64_t hosts() const { return machine.hosts; }
  // Parts of the global batch that are worked on side by side.
  std::int64_t batch_shares() const { return hosts() * replicas(); }
  // Micro-batches a GPU runs in one step: as many as any other, or as Strategy::shares says.
  std::int64_t micro_batches(std::size_t gpu) const;
  std::int64_t most_micro_batches() const;  // of the GPU that runs most
  std::int64_t step_micro_batches() const;  // of all replicas of a host together
  // Those of the replicas before a GPU's: its own follow them in the host's part of the batch.
  std::int64_t first_micro_batch(std::size_t gpu) const;
  // Bytes of one boundary activation: [micro_batch, sequence, hidden].
  platform::Bytes boundary_bytes() const;
  // With a tensor split the plan's own table is of a slice: this one is of the whole model.
  workloads::LayerTable whole_table() const;
  std::int64_t parameters() const;  // of the whole model
  // Forward and backward of one token through the whole model, without recomputation.
  platform::Flops flops_per_token() const;
  // The part of the parameters whose state stays on the GPUs.
  double residency() const;
};

// Bytes of an element as it is: fetched to a GPU; accumulated in a GPU's gradient slot; sent to the
// CPU. bf16: 2, 4, 2; f32: 4, 4, 4.
struct ElementBytes {
  std::int64_t weight = 0, gradient = 0, sent_gradient = 0, activation = 0;
};
ElementBytes element_bytes(platform::Precision precision);

// Bytes of one parameter's whole state: fp32 master (in bf16 runs as a `hi` plane, which is the
// weight, and a 16-bit `lo` plane) and two moments. 12 with f32 moments, 8 with bf16 ones.
std::int64_t state_bytes(MomentPrecision moments);

// [begin, end) in elements of a sub-model's flat buffer.
struct Range {
  std::int64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
  std::int64_t size() const { return empty() ? 0 : end - begin; }
};
// What a GPU fetches and sends of a sub-model: its shard (Plan::shard_of) without the padding.
Range shard_range(const SubModel& submodel, std::int64_t shard);
// The part of it that the GPU's update changes: empty when the shard holds only borrowed elements.
Range owned_range(const SubModel& submodel, std::int64_t shard);

// The same of a GPU.
Range shard_of_gpu(const Plan& plan, const SubModel& submodel, std::int64_t gpu);
Range owned_by_gpu(const Plan& plan, const SubModel& submodel, std::int64_t gpu);

// The plan for one full strategy, whether it fits or not (ask memory.fits()).
// Errors: Error(bad_input) when the global batch is not batch_shares x micro_batch x a whole
// number, or not what the shares come to, the tensor split does not come out even, the model can't
// be planned, or several hosts can't train this way together.
Plan make_plan(const platform::Machine& machine, const workloads::Workload& workload,
               const Strategy& strategy);

// Makes `plan` the plan of another strategy, with what does not depend on it left as it is: for
// searches, which change one knob many times. Precondition: tensor_ways and micro_batch are the
// plan's. Errors: as make_plan; the plan is then of no use.
void change_strategy(Plan& plan, const Strategy& strategy);

}  // namespace offstage::scheduler
