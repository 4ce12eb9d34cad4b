#include "scheduler/plan.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "platform/collective.h"
#include "platform/error.h"
#include "platform/format.h"
#include "scheduler/plan_ledger.h"
#include "scheduler/tensor_split.h"
#include "scheduler/working_memory.h"
#include "workloads/tensor_slice.h"

namespace offstage::scheduler {
namespace {

using platform::Bytes;
using workloads::LayerKind;

Error impossible(const std::string& message) { return {ErrorCode::bad_input, message}; }

// Equal shares are those of a strategy that lists none.
std::vector<std::int64_t> without_even(std::vector<std::int64_t> shares) {
  if (std::ranges::adjacent_find(shares, std::ranges::not_equal_to()) == shares.end()) {
    shares.clear();
  }
  return shares;
}

// Uneven shares.
void check_shares(const platform::Machine& machine, const workloads::Workload& workload,
                  const Strategy& strategy) {
  const auto& shares = strategy.shares;
  if (strategy.tensor_ways > 1 || machine.hosts > 1) {
    throw impossible(fmt::format(
        "shares: uneven ones need the batch split on one host; here are {} tensor_ways and {} "
        "host{}: leave `shares` out, or write `even`",
        strategy.tensor_ways, machine.hosts, machine.hosts == 1 ? "" : "s"));
  }
  if (shares.size() != machine.gpus.size()) {
    throw impossible(fmt::format("shares lists {} numbers of micro-batches for {} GPUs",
                                 shares.size(), machine.gpus.size()));
  }
  const std::int64_t sum = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  if (*std::ranges::min_element(shares) < 1 ||
      sum * strategy.micro_batch != workload.global_batch) {
    throw impossible(fmt::format(
        "shares [{}] are {} micro-batches of {}, together {} sequences; global_batch is {}, and "
        "each GPU runs one micro-batch at least",
        fmt::join(shares, ", "), sum, strategy.micro_batch, sum * strategy.micro_batch,
        workload.global_batch));
  }
}

void check_batch(const platform::Machine& machine, const workloads::Workload& workload,
                 const Strategy& strategy) {
  if (!strategy.shares.empty()) return check_shares(machine, workload, strategy);
  const auto gpus = static_cast<std::int64_t>(machine.gpus.size());
  const std::int64_t replicas = gpus / strategy.tensor_ways;
  const std::int64_t at_once = machine.hosts * replicas * strategy.micro_batch;
  if (workload.global_batch % at_once == 0) return;
  std::string who = strategy.tensor_ways == 1
                        ? fmt::format("{} GPUs", gpus)
                        : fmt::format("{} groups of {} GPUs", replicas, strategy.tensor_ways);
  if (machine.hosts > 1) who = fmt::format("{} hosts x {}", machine.hosts, who);
  throw impossible(fmt::format(
      "global_batch {} is not a whole number of {} x micro_batch {} = {} "
      "sequences; the nearest that are: {} and {}{}",
      workload.global_batch, who, strategy.micro_batch, at_once,
      std::max<std::int64_t>(1, workload.global_batch / at_once) * at_once,
      (workload.global_batch / at_once + 1) * at_once,
      strategy.tensor_ways == 1 && machine.hosts == 1 ? "; or leave strategy.shares to the planner"
                                                      : ""));
}

// The sum over the hosts is taken in CPU memory; and all of them must take their sums in one order.
void check_hosts(const platform::Machine& machine, const Strategy& strategy) {
  if (machine.hosts == 1) return;
  if (strategy.resident_state > 0) {
    throw impossible(
        fmt::format("resident_state {}: with {} hosts all gradients pass through CPU memory, where "
                    "they are summed over the hosts: resident_state must be 0 (resident_weights "
                    "need not)",
                    strategy.resident_state, machine.hosts));
  }
  if (strategy.policy != PolicyKind::planned) {
    throw impossible(
        fmt::format("policy {}: {} hosts must sum gradients in the same order, or each waits for "
                    "another: policy must be planned, whose order is the plan's",
                    to_string(strategy.policy), machine.hosts));
  }
}

// Knobs that count sub-models of blocks, of which there are `blocks`.
void check_places(const platform::Machine& machine, const Strategy& strategy, std::int64_t blocks) {
  const std::int64_t placed =
      strategy.resident_state + strategy.resident_weights + strategy.nvme_state;
  if (placed > blocks) {
    throw impossible(fmt::format(
        "resident_state {} + resident_weights {} + nvme_state {} exceed "
        "the {} sub-models of blocks",
        strategy.resident_state, strategy.resident_weights, strategy.nvme_state, blocks));
  }
  if (strategy.kept_activations > blocks) {
    throw impossible(fmt::format("kept_activations {} exceeds the {} sub-models of blocks",
                                 strategy.kept_activations, blocks));
  }
  if (strategy.nvme_state > 0 && machine.drives.empty()) {
    throw impossible(fmt::format("nvme_state {}: machine {} has no NVMe drives",
                                 strategy.nvme_state, machine.name));
  }
  if (strategy.clipping == Clipping::exact && strategy.resident_state > 0) {
    throw impossible(
        "clipping exact needs all gradients in CPU memory at once: resident_state must be 0");
  }
}

std::vector<std::int64_t> packs(const Strategy& strategy, std::int64_t layers) {
  if (strategy.cuts.empty()) {
    std::vector<std::int64_t> equal;
    for (std::int64_t left = layers; left > 0; left -= equal.back()) {
      equal.push_back(std::min(left, strategy.layers_per_submodel));
    }
    return equal;
  }
  const std::int64_t sum =
      std::accumulate(strategy.cuts.begin(), strategy.cuts.end(), std::int64_t{0});
  if (sum != layers) {
    throw impossible(
        fmt::format("layers_per_submodel lists {} blocks, the model has {}", sum, layers));
  }
  return strategy.cuts;
}

void place_states(const Strategy& strategy, std::vector<SubModel>& submodels) {
  const auto blocks = static_cast<std::int64_t>(submodels.size()) - 2;
  for (std::int64_t i = 0; i < blocks; ++i) {
    auto& submodel = submodels[static_cast<std::size_t>(i) + 1];
    if (i < strategy.resident_state) {
      submodel.state = StatePlace::resident;
    } else if (i < strategy.resident_state + strategy.resident_weights) {
      submodel.state = StatePlace::resident_weights;
    } else if (i >= blocks - strategy.nvme_state) {
      submodel.state = StatePlace::nvme;
    }
    submodel.keeps_activations = i >= blocks - strategy.kept_activations;
  }
}

// Embedding, packs of blocks, head.
std::vector<SubModel> cut(const workloads::LayerTable& table, std::int64_t shards,
                          const Strategy& strategy) {
  const std::size_t head = table.layers.size() - 1;
  std::vector<SubModel> submodels{{.first_layer = 0, .end_layer = 1}};
  for (const auto pack : packs(strategy, table.model.layers)) {
    const std::size_t first = submodels.back().end_layer;
    submodels.push_back(
        {.first_layer = first, .end_layer = first + static_cast<std::size_t>(pack)});
  }
  submodels.push_back({.first_layer = head, .end_layer = head + 1});
  if (table.model.tied_embeddings) {
    submodels.back().borrowed = table.model.vocab * table.model.embedding_dim;
  }
  const std::int64_t grain = shards * kShardAlignment;
  for (auto& submodel : submodels) {
    for (std::size_t i = submodel.first_layer; i < submodel.end_layer; ++i) {
      submodel.parameters += table.layer(i).parameter_count;
    }
    submodel.shard_elements = (submodel.moved() + grain - 1) / grain * kShardAlignment;
  }
  return submodels;
}

}  // namespace

ElementBytes element_bytes(platform::Precision precision) {
  if (precision == platform::Precision::bf16) {
    return {.weight = 2, .gradient = 4, .sent_gradient = 2, .activation = 2};
  }
  return {.weight = 4, .gradient = 4, .sent_gradient = 4, .activation = 4};
}

std::int64_t state_bytes(MomentPrecision moments) {
  constexpr std::int64_t kMaster = 4;
  const std::int64_t moment = moments == MomentPrecision::f32 ? 4 : 2;
  return kMaster + 2 * moment;
}

Range shard_range(const SubModel& submodel, std::int64_t index) {
  const std::int64_t begin = index * submodel.shard_elements;
  return {std::min(begin, submodel.moved()),
          std::min(begin + submodel.shard_elements, submodel.moved())};
}

Range owned_range(const SubModel& submodel, std::int64_t index) {
  const Range shard = shard_range(submodel, index);
  return {std::max(shard.begin, submodel.borrowed), std::max(shard.end, submodel.borrowed)};
}

Range shard_of_gpu(const Plan& plan, const SubModel& submodel, std::int64_t gpu) {
  return shard_range(submodel, plan.shard_of(static_cast<std::size_t>(gpu)));
}

Range owned_by_gpu(const Plan& plan, const SubModel& submodel, std::int64_t gpu) {
  return owned_range(submodel, plan.shard_of(static_cast<std::size_t>(gpu)));
}

std::int64_t Plan::micro_batches(std::size_t gpu) const {
  if (!strategy.shares.empty()) return strategy.shares[gpu];
  return workload.global_batch / (batch_shares() * strategy.micro_batch);
}

std::int64_t Plan::most_micro_batches() const {
  return strategy.shares.empty() ? micro_batches(0) : *std::ranges::max_element(strategy.shares);
}

std::int64_t Plan::step_micro_batches() const {
  return workload.global_batch / (hosts() * strategy.micro_batch);
}

std::int64_t Plan::first_micro_batch(std::size_t gpu) const {
  const std::int64_t replica = shard_of(gpu);
  if (strategy.shares.empty()) return replica * micro_batches(gpu);
  return std::accumulate(strategy.shares.begin(), strategy.shares.begin() + replica,
                         std::int64_t{0});
}

workloads::LayerTable Plan::whole_table() const {
  return workloads::make_layer_table(workload.model, table.batch);
}

Bytes Plan::boundary_bytes() const {
  return {strategy.micro_batch * workload.sequence_length * workload.model.hidden *
          element_bytes(workload.precision).activation};
}

std::int64_t Plan::parameters() const {
  return strategy.tensor_ways == 1 ? table.parameters()
                                   : workloads::count_parameters(workload.model);
}

platform::Flops Plan::flops_per_token() const {
  if (strategy.tensor_ways == 1) return table.flops_per_token();
  return whole_table().flops_per_token();
}

std::size_t Plan::home_socket(std::size_t gpu, std::size_t submodel) const {
  const std::size_t own = machine.gpus[gpu].socket;
  if (strategy.host_memory == HostMemory::near) return own;
  return (own + submodel) % machine.sockets.size();
}

double Plan::residency() const {
  std::int64_t resident = 0;
  std::int64_t all = 0;
  for (const auto& submodel : submodels) {
    if (submodel.state == StatePlace::resident) resident += submodel.parameters;
    all += submodel.parameters;
  }
  return static_cast<double>(resident) / static_cast<double>(all);
}

Plan make_plan(const platform::Machine& machine, const workloads::Workload& workload,
               const Strategy& strategy) {
  if (!workloads::plannable(workload.model)) {
    throw impossible(
        fmt::format("model {} ({}) is an encoder or encoder-decoder: it is counted, but "
                    "only decoder-only models can be planned",
                    workload.model.name, workload.model.architecture));
  }
  if (const auto why = split_obstacle(machine, strategy.tensor_ways)) throw impossible(*why);
  Plan plan;
  plan.machine = machine;
  plan.workload = workload;
  plan.strategy = strategy;
  plan.table =
      workloads::make_layer_table(workloads::tensor_slice(workload.model, strategy.tensor_ways),
                                  {.micro_batch = strategy.micro_batch,
                                   .sequence_length = workload.sequence_length,
                                   .precision = compute_precision(machine, workload)});
  const auto ways = static_cast<std::size_t>(strategy.tensor_ways);
  for (std::size_t g = 0; ways > 1 && g < machine.gpus.size(); g += ways) {
    plan.group_routes.push_back(platform::add_group_route(plan.machine, g, ways));
  }
  change_strategy(plan, strategy);
  return plan;
}

void change_strategy(Plan& plan, const Strategy& strategy) {
  OFFSTAGE_CHECK(strategy.tensor_ways == plan.strategy.tensor_ways &&
                     strategy.micro_batch == plan.strategy.micro_batch,
                 "the layer table would change");
  plan.strategy = strategy;
  plan.strategy.shares = without_even(strategy.shares);
  check_batch(plan.machine, plan.workload, plan.strategy);
  plan.strategy.layers_per_submodel =
      std::min(strategy.layers_per_submodel, plan.workload.model.layers);
  plan.submodels = cut(plan.table, plan.replicas(), plan.strategy);
  check_places(plan.machine, strategy, static_cast<std::int64_t>(plan.submodels.size()) - 2);
  check_hosts(plan.machine, strategy);
  place_states(plan.strategy, plan.submodels);
  plan.memory = make_ledger(plan);
}

}  // namespace offstage::scheduler
