#include "scheduler/plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "platform/error.h"
#include "platform/format.h"
#include "scheduler/plan_ledger.h"

namespace offstage::scheduler {
namespace {

using platform::Bytes;
using workloads::LayerKind;

void check_strategy(const platform::Machine& machine, const workloads::Workload& workload,
                    const Strategy& strategy) {
  if (!workloads::plannable(workload.model)) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format("model {} ({}) is an encoder or encoder-decoder: it is counted, but only "
                    "decoder-only models can be planned",
                    workload.model.name, workload.model.architecture));
  }
  const auto gpus = static_cast<std::int64_t>(machine.gpus.size());
  const std::int64_t at_once = gpus * strategy.micro_batch;
  if (workload.global_batch % at_once != 0) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format("global_batch {} is not a whole number of {} GPUs x micro_batch {} = {} "
                    "sequences; the nearest that are: {} and {}",
                    workload.global_batch, gpus, strategy.micro_batch, at_once,
                    std::max<std::int64_t>(1, workload.global_batch / at_once) * at_once,
                    (workload.global_batch / at_once + 1) * at_once));
  }
}

// Embedding, blocks in equal packs (the last may be smaller), head.
std::vector<SubModel> cut(const workloads::LayerTable& table, std::int64_t gpus,
                          std::int64_t layers_per_submodel) {
  const std::size_t head = table.layers.size() - 1;
  std::vector<SubModel> submodels{{.first_layer = 0, .end_layer = 1}};
  const auto pack = static_cast<std::size_t>(layers_per_submodel);
  for (std::size_t first = 1; first < head; first += pack) {
    submodels.push_back({.first_layer = first, .end_layer = std::min(first + pack, head)});
  }
  submodels.push_back({.first_layer = head, .end_layer = head + 1});
  if (table.model.tied_embeddings) {
    submodels.back().borrowed = table.model.vocab * table.model.embedding_dim;
  }
  const std::int64_t grain = gpus * kShardAlignment;
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

Range shard_range(const SubModel& submodel, std::int64_t gpu) {
  const std::int64_t begin = gpu * submodel.shard_elements;
  return {std::min(begin, submodel.moved()),
          std::min(begin + submodel.shard_elements, submodel.moved())};
}

Range owned_range(const SubModel& submodel, std::int64_t gpu) {
  const Range shard = shard_range(submodel, gpu);
  return {std::max(shard.begin, submodel.borrowed), std::max(shard.end, submodel.borrowed)};
}

Bytes Plan::boundary_bytes() const {
  return {strategy.micro_batch * workload.sequence_length * workload.model.hidden *
          element_bytes(workload.precision).activation};
}

std::int64_t Plan::parameters() const {
  std::int64_t sum = 0;
  for (const auto& submodel : submodels) sum += submodel.parameters;
  return sum;
}

Plan make_plan(const platform::Machine& machine, const workloads::Workload& workload,
               const Strategy& strategy) {
  check_strategy(machine, workload, strategy);
  Plan plan;
  plan.machine = machine;
  plan.workload = workload;
  plan.strategy = strategy;
  plan.strategy.layers_per_submodel = std::min(strategy.layers_per_submodel, workload.model.layers);
  plan.table =
      workloads::make_layer_table(workload.model, {.micro_batch = strategy.micro_batch,
                                                   .sequence_length = workload.sequence_length,
                                                   .precision = workload.precision});
  plan.submodels = cut(plan.table, plan.gpus(), plan.strategy.layers_per_submodel);
  plan.memory = make_ledger(plan);
  return plan;
}

}  // namespace offstage::scheduler
