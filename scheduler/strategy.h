#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platform/document.h"

// The knobs of a plan. A user fixes any of them in the config's `strategy` map; the planner chooses
// the rest.
namespace offstage::scheduler {

// How a sub-model becomes parallel tasks. batch: every GPU holds all of it for a moment and works
// on its own micro-batches. tensor: groups of GPUs hold and compute their columns and rows of it
// and work on the same micro-batch; the groups share the batch. For steps with few samples.
enum class Split { batch, tensor };

// Where the activations at the cuts between sub-models wait for the backward pass.
enum class ActivationPlace { gpu, cpu };

// Which socket's memory holds a GPU's CPU state and waiting activations: that of the socket beside
// the GPU; or all sockets in turn, sub-model by sub-model, each updating what it holds. For
// machines whose GPUs do not hang evenly on the sockets.
enum class HostMemory { near, all };

// The names in policies/registry.cpp, in its order; one that is missing here can be asked for in
// configs all the same.
enum class PolicyKind { fifo, planned, critical_path, heft, resource_aware };

// AdamW's two moments: f32 is exact; bf16 saves 4 bytes a parameter and is another optimizer.
enum class MomentPrecision { f32, bf16 };

// exact: the norm over all gradients, known before any update starts. Costs the overlap of updates
// with backward, and CPU memory for all gradients at once.
enum class Clipping { none, exact };

struct Strategy {
  // GPUs in a group, consecutive ones: 1 is the batch split, all is the tensor split, what lies
  // between is a mix.
  std::int64_t tensor_ways = 1;
  // Blocks of each sub-model between embedding and head, which are sub-models of their own: equal
  // packs, the last may be smaller, or as listed in `cuts`.
  std::int64_t layers_per_submodel = 1;
  std::vector<std::int64_t> cuts;
  std::int64_t micro_batch = 1;  // sequences a GPU works on at once
  // Micro-batches of each GPU in a step, at least one; empty: equally many. Uneven ones need the
  // batch split on one host.
  std::vector<std::int64_t> shares;
  int weight_slots = 2;         // sub-models' weights a GPU holds at once
  int gradient_slots = 1;       // sub-models' gradients a GPU holds at once
  int host_gradient_slots = 2;  // sub-models' gradients waiting for the optimizer
  ActivationPlace activations = ActivationPlace::gpu;
  // With activations on the CPU: boundary activations a GPU has room for beyond the one of each
  // micro-batch, so that fetches run ahead.
  int spare_activation_slots = 2;
  HostMemory host_memory = HostMemory::near;
  // Counted in sub-models of blocks. From the first block on: those whose whole state stays on the
  // GPUs and is updated there, then those whose weights do. From the last block back: those that
  // keep their activations instead of recomputing them. Of the others, the last ones have moments
  // and low plane on NVMe.
  std::int64_t resident_state = 0;
  std::int64_t resident_weights = 0;
  std::int64_t kept_activations = 0;
  std::int64_t nvme_state = 0;
  int nvme_slots = 3;  // sub-models' NVMe state in CPU memory at once
  MomentPrecision moments = MomentPrecision::f32;
  Clipping clipping = Clipping::none;
  PolicyKind policy = PolicyKind::planned;
  int submit_ahead = 4;  // tasks in flight per engine, queued ones included
};

// What the user fixed; the rest is the planner's to choose. Moments and clipping change what is
// computed, so they are never the planner's: unnamed, they are f32 and none.
struct StrategyRequest {
  std::optional<Split> split;  // tensor: more than one way, how many is the planner's unless fixed
  std::optional<std::int64_t> tensor_ways;
  std::optional<std::int64_t> layers_per_submodel;
  std::optional<std::vector<std::int64_t>> cuts;
  std::optional<std::int64_t> micro_batch;
  std::optional<std::vector<std::int64_t>> shares;  // empty: even ones are asked for
  std::optional<int> weight_slots;
  std::optional<int> gradient_slots;
  std::optional<int> host_gradient_slots;
  std::optional<ActivationPlace> activations;
  std::optional<int> spare_activation_slots;
  std::optional<HostMemory> host_memory;
  std::optional<std::int64_t> resident_state;
  std::optional<std::int64_t> resident_weights;
  std::optional<std::int64_t> kept_activations;
  std::optional<std::int64_t> nvme_state;
  std::optional<int> nvme_slots;
  MomentPrecision moments = MomentPrecision::f32;
  Clipping clipping = Clipping::none;
  std::optional<PolicyKind> policy;
  std::optional<int> submit_ahead;
};

// Reads `auto` or a map of knobs.
// Errors: Error(bad_input) with place, allowed values and nearest match.
StrategyRequest read_strategy(const platform::Node& node);

std::string to_string(Split split);
std::string to_string(ActivationPlace place);
std::string to_string(HostMemory memory);
std::string to_string(PolicyKind policy);
std::string to_string(MomentPrecision precision);
std::string to_string(Clipping clipping);
std::vector<std::string> policy_names();
// Errors: Error(bad_usage) that lists the policies.
PolicyKind policy_from_string(const std::string& name);

}  // namespace offstage::scheduler
