#include "scheduler/plan_space.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "platform/error.h"
#include "scheduler/bisection.h"
#include "scheduler/shares.h"
#include "scheduler/strategy_knobs.h"
#include "scheduler/tensor_split.h"
#include "workloads/tensor_slice.h"

namespace offstage::scheduler {
namespace {

using platform::Bytes;
using platform::PoolKind;

// More sequences at once than this never paid in a GPU's GEMM tables, which are flat from 8,192
// rows on (platform/catalog).
constexpr std::int64_t kLargestMicroBatch = 64;

// With more sequences than this for each GPU a tensor split has nothing to gain: every GPU is busy
// with micro-batches of its own, without all-reduces. Checked in results/search.
constexpr std::int64_t kFewSequences = 4;

std::int64_t gpu_count(const PlanningInput& input) {
  return static_cast<std::int64_t>(input.machine.gpus.size());
}

std::int64_t sequences_per_replica(const PlanningInput& input, std::int64_t ways) {
  const std::int64_t replicas = gpu_count(input) / ways * input.machine.hosts;
  const std::int64_t batch = input.workload.global_batch;
  if (batch % replicas != 0) {
    throw Error(ErrorCode::bad_input,
                fmt::format("global_batch {} can't be dealt evenly to {} {}; the nearest that can: "
                            "{} and {}",
                            batch, replicas, ways == 1 ? "GPUs" : "groups of GPUs",
                            std::max<std::int64_t>(1, batch / replicas) * replicas,
                            (batch / replicas + 1) * replicas));
  }
  return batch / replicas;
}

// Whether a GPU need not have as many sequences as the next: shares are listed, or open and not
// better even.
bool deals_unevenly(const PlanningInput& input, std::int64_t ways) {
  if (!shares_may_differ(input, ways)) return false;
  const std::int64_t batch = input.workload.global_batch;
  if (input.request.shares) return true;
  return batch > gpu_count(input) && (batch % gpu_count(input) != 0 || !gpus_alike(input.machine));
}

// Micro-batches that make up the batch, at least one for each GPU.
std::vector<std::int64_t> uneven_micro_batches(const PlanningInput& input) {
  const auto& request = input.request;
  const std::int64_t batch = input.workload.global_batch;
  if (request.micro_batch) return {*request.micro_batch};
  if (request.shares) {
    const std::int64_t count =
        std::accumulate(request.shares->begin(), request.shares->end(), std::int64_t{0});
    return {std::max<std::int64_t>(1, batch / count)};
  }
  std::vector<std::int64_t> micro_batches;
  for (std::int64_t d = 1; d <= std::min(batch / gpu_count(input), kLargestMicroBatch); ++d) {
    if (batch % d == 0) micro_batches.push_back(d);
  }
  return micro_batches;
}

// The tensor splits that this machine, model and batch allow.
std::vector<std::int64_t> open_ways(const PlanningInput& input) {
  const auto& request = input.request;
  if (request.tensor_ways) return {*request.tensor_ways};
  if (request.split == Split::batch) return {1};
  const bool tensor_only = request.split == Split::tensor;
  std::vector<std::int64_t> open;
  for (std::int64_t ways = 1; ways <= gpu_count(input); ++ways) {
    if (split_obstacle(input.machine, ways) || (ways == 1 && tensor_only)) continue;
    const std::int64_t replicas = gpu_count(input) / ways * input.machine.hosts;
    const std::int64_t batch = input.workload.global_batch;
    if (shares_may_differ(input, ways) ? batch < replicas : batch % replicas != 0) continue;
    if (!workloads::sliceable(input.workload.model, ways)) continue;
    open.push_back(ways);
  }
  // Nothing comes out even: let the planner say so, of the split that was asked for.
  if (open.empty()) open = {tensor_only ? gpu_count(input) : 1};
  return open;
}

// Moves state between pools until a strategy fits.
class Placer {
 public:
  Placer(const PlanningInput& input, Strategy strategy)
      : input_(input),
        strategy_(std::move(strategy)),
        plan_(make_plan(input.machine, input.workload, strategy_)) {
    blocks_ = block_submodels(input, strategy_);
    const auto& request = input.request;
    lowest_ = request.resident_state.value_or(0);
    highest_ = request.resident_state.value_or(
        state_may_reside(input, strategy_)
            ? blocks_ - std::min(blocks_, strategy_.resident_weights + strategy_.nvme_state)
            : 0);
    highest_kept_ = request.kept_activations.value_or(blocks_);
  }

  std::vector<Plan> plans() {
    const auto least = least_resident();
    if (!least) return {};
    strategy_.resident_state = *least;
    if (!shortfall().none()) return {};
    std::vector<Plan> plans{plan()};
    const auto most = largest(*least, highest_ - extra_nvme_, [this](std::int64_t n) {
      strategy_.resident_state = n;
      return shortfall().none();
    });
    strategy_.resident_state = most.value_or(*least);
    if (strategy_.resident_state > *least) plans.push_back(plan());
    strategy_.resident_state = *least;
    if (input_.request.kept_activations) return plans;
    const auto kept = largest(0, highest_kept_, [this](std::int64_t n) {
      strategy_.kept_activations = n;
      return shortfall().none();
    });
    strategy_.kept_activations = kept.value_or(0);
    if (strategy_.kept_activations > 0) plans.push_back(plan());
    return plans;
  }

  // With as much state on the GPUs as they hold, whether CPU memory then suffices or not.
  Plan fullest() {
    const auto most = largest(lowest_, highest_, [this](std::int64_t n) { return gpus_hold(n); });
    strategy_.resident_state = most.value_or(lowest_);
    return plan();
  }

 private:
  const Plan& plan() {
    change_strategy(plan_, strategy_);
    return plan_;
  }
  Shortfall shortfall() { return shortfall_of(plan()); }

  bool gpus_hold(std::int64_t resident) {
    strategy_.resident_state = resident;
    return shortfall().gpu.value == 0;
  }

  // The fewest sub-models on the GPUs for which CPU memory suffices; what it can't hold even when
  // the GPUs are full goes to NVMe.
  std::optional<std::int64_t> least_resident() {
    const auto host_fits = [this](std::int64_t n) {
      strategy_.resident_state = n;
      return shortfall().host.value == 0;
    };
    const auto least = smallest(lowest_, highest_, host_fits);
    if (input_.request.nvme_state || input_.machine.drives.empty()) return least;
    if (least && gpus_hold(*least)) return least;
    const auto full = largest(lowest_, highest_, [this](std::int64_t n) { return gpus_hold(n); });
    if (!full) return std::nullopt;
    strategy_.resident_state = *full;
    const auto moved =
        smallest(1, blocks_ - *full - strategy_.resident_weights, [this](std::int64_t n) {
          strategy_.nvme_state = n;
          return shortfall().host.value == 0;
        });
    if (!moved) return std::nullopt;
    strategy_.nvme_state = *moved;
    extra_nvme_ = *moved;
    return full;
  }

  const PlanningInput& input_;
  Strategy strategy_;
  Plan plan_;  // of the strategy tried last
  std::int64_t blocks_ = 0;
  std::int64_t lowest_ = 0, highest_ = 0, highest_kept_ = 0;
  std::int64_t extra_nvme_ = 0;
};

}  // namespace

std::int64_t block_submodels(const PlanningInput& input, const Strategy& strategy) {
  if (!strategy.cuts.empty()) return static_cast<std::int64_t>(strategy.cuts.size());
  const std::int64_t layers = input.workload.model.layers;
  const std::int64_t pack = std::min(layers, strategy.layers_per_submodel);
  return (layers + pack - 1) / pack;
}

bool state_may_reside(const PlanningInput& input, const Strategy& strategy) {
  return strategy.clipping == Clipping::none && input.machine.hosts == 1;
}

Bytes Shortfall::worst() const { return std::max({gpu, host, nvme}); }

Shortfall shortfall_of(const Plan& plan) {
  Shortfall shortfall;
  for (const auto& pool : plan.memory.pools) {
    const Bytes lacks = std::max(Bytes{}, pool.total() - pool.capacity);
    const auto kind = plan.machine.pools[pool.pool].kind;
    Bytes& sum = kind == PoolKind::gpu    ? shortfall.gpu
                 : kind == PoolKind::host ? shortfall.host
                                          : shortfall.nvme;
    sum = std::max(sum, lacks);
  }
  return shortfall;
}

OpenKnobs open_knobs(const PlanningInput& input) {
  const auto& request = input.request;
  OpenKnobs knobs;
  knobs.ways = open_ways(input);
  const std::int64_t layers = input.workload.model.layers;
  for (std::int64_t pack = 1; pack < layers; pack *= 2) {
    knobs.packs.push_back(pack);
    if (pack > 1 && pack * 3 / 2 < layers) knobs.packs.push_back(pack * 3 / 2);
  }
  knobs.packs.push_back(layers);
  if (request.layers_per_submodel) knobs.packs = {*request.layers_per_submodel};
  if (request.cuts) knobs.packs = {1};
  knobs.places = {ActivationPlace::gpu, ActivationPlace::cpu};
  if (request.activations) knobs.places = {*request.activations};
  return knobs;
}

std::vector<std::int64_t> open_micro_batches(const PlanningInput& input, std::int64_t ways) {
  if (deals_unevenly(input, ways)) return uneven_micro_batches(input);
  const std::int64_t sequences = sequences_per_replica(input, ways);
  if (input.request.micro_batch) return {*input.request.micro_batch};
  std::vector<std::int64_t> micro_batches;
  for (std::int64_t d = 1; d <= std::min(sequences, kLargestMicroBatch); ++d) {
    if (sequences % d == 0) micro_batches.push_back(d);
  }
  return micro_batches;
}

bool few_samples(const PlanningInput& input) {
  return input.workload.global_batch <= kFewSequences * gpu_count(input) * input.machine.hosts;
}

Strategy starting_strategy(const PlanningInput& input) {
  Strategy strategy = fixed_knobs(input.request);
  if (input.request.host_memory) return strategy;
  std::vector<int> gpus(input.machine.sockets.size());
  for (const auto& gpu : input.machine.gpus) ++gpus[gpu.socket];
  const bool even = std::ranges::all_of(gpus, [&gpus](int count) { return count == gpus[0]; });
  strategy.host_memory = even ? HostMemory::near : HostMemory::all;
  return strategy;
}

std::vector<Plan> fitting_plans(const PlanningInput& input, const Strategy& strategy) {
  return Placer(input, strategy).plans();
}

Plan least_plan(const PlanningInput& input, Strategy strategy) {
  const auto& request = input.request;
  if (!request.weight_slots) strategy.weight_slots = 1;
  if (!request.gradient_slots) strategy.gradient_slots = 1;
  if (!request.host_gradient_slots) strategy.host_gradient_slots = 1;
  if (!request.spare_activation_slots) strategy.spare_activation_slots = 1;
  return Placer(input, std::move(strategy)).fullest();
}

}  // namespace offstage::scheduler
