#include "scheduler/systems/system_plan.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "platform/collective.h"
#include "platform/error.h"
#include "scheduler/systems/data_parallel.h"
#include "scheduler/systems/graph_writer.h"
#include "scheduler/systems/harmony.h"
#include "scheduler/systems/megatron.h"
#include "scheduler/systems/patrickstar.h"
#include "scheduler/systems/system_ledger.h"
#include "scheduler/systems/zero3.h"
#include "workloads/model.h"
#include "workloads/tensor_slice.h"

namespace offstage::scheduler::systems {

using platform::Machine;
using workloads::LayerTable;
using workloads::Workload;

namespace {

Error refused(const std::string& message) { return {ErrorCode::bad_input, message}; }

void require_possible(const Machine& machine, const Workload& workload,
                      const SystemStrategy& strategy) {
  if (platform::has_virtual_gpus(machine)) {
    throw refused(
        fmt::format("{}: published systems are planned for machines with GPUs", machine.name));
  }
  if (!workloads::plannable(workload.model)) {
    throw refused(fmt::format("{} can be counted but not planned", workload.model.name));
  }
  if (machine.hosts > 1) throw refused("published systems are planned on one host");
  require_consistent(strategy, static_cast<std::int64_t>(machine.gpus.size()));
  const std::int64_t at_once = strategy.data * strategy.micro_batch;
  if (workload.global_batch % at_once != 0) {
    throw refused(fmt::format(
        "global_batch {} is no multiple of data {} x micro_batch {}: change one of them",
        workload.global_batch, strategy.data, strategy.micro_batch));
  }
  if (workload.model.layers < strategy.pipeline) {
    throw refused(fmt::format("pipeline {} has more stages than the model blocks ({})",
                              strategy.pipeline, workload.model.layers));
  }
  if (strategy.optimizer == Place::nvme || strategy.parameters == Place::nvme) {
    if (machine.drives.empty()) throw refused(machine.name + " has no NVMe drive");
  }
}

// Blocks in equal parts, the first stages one more where they do not divide; the embedding goes
// with the first, the head with the last.
std::vector<Stage> make_stages(const SystemPlan& plan) {
  const std::int64_t blocks = plan.workload.model.layers, stages = plan.strategy.pipeline;
  std::vector<Stage> result;
  std::size_t first = 0;
  for (std::int64_t s = 0; s < stages; ++s) {
    const std::int64_t count = blocks / stages + (s < blocks % stages ? 1 : 0);
    Stage stage{first, first + static_cast<std::size_t>(count), 0};
    if (s == 0) ++stage.end_layer;
    if (s + 1 == stages) ++stage.end_layer;
    for (std::size_t i = stage.first_layer; i < stage.end_layer; ++i) {
      stage.parameters += plan.table.layer(i).parameter_count;
    }
    first = stage.end_layer;
    result.push_back(stage);
  }
  const auto& model = plan.table.model;
  if (stages > 1 && model.tied_embeddings) {
    result.back().parameters += model.vocab * model.embedding_dim;
  }
  return result;
}

void add_group(SystemPlan& plan, std::vector<std::size_t> gpus) {
  if (gpus.size() < 2) return;
  std::ranges::sort(gpus);
  if (std::ranges::find(plan.groups, gpus, &GroupRoute::gpus) != plan.groups.end()) return;
  const auto route = platform::add_group_route(plan.machine, gpus);
  plan.groups.push_back({std::move(gpus), route});
}

std::vector<std::size_t> joined(std::vector<std::size_t> a, const std::vector<std::size_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Every set of GPUs that a task of these systems brings together.
void add_groups(SystemPlan& plan) {
  const auto& strategy = plan.strategy;
  std::vector<std::size_t> all(static_cast<std::size_t>(plan.gpus()));
  std::iota(all.begin(), all.end(), std::size_t{0});
  add_group(plan, all);
  const std::int64_t last = strategy.pipeline - 1;
  for (std::int64_t s = 0; s <= last; ++s) {
    for (std::int64_t d = 0; d < strategy.data; ++d) {
      add_group(plan, plan.tensor_group(s, d));
      if (s < last) add_group(plan, joined(plan.tensor_group(s, d), plan.tensor_group(s + 1, d)));
    }
    for (std::int64_t t = 0; t < strategy.tensor; ++t) add_group(plan, plan.data_group(s, t));
  }
  for (std::int64_t t = 0; t < strategy.tensor && last > 0; ++t) {
    add_group(plan, joined(plan.data_group(0, t), plan.data_group(last, t)));
  }
}

}  // namespace

std::vector<std::size_t> SystemPlan::tensor_group(std::int64_t stage,
                                                  std::int64_t data_rank) const {
  std::vector<std::size_t> gpus;
  for (std::int64_t t = 0; t < strategy.tensor; ++t) gpus.push_back(gpu(stage, data_rank, t));
  return gpus;
}

std::vector<std::size_t> SystemPlan::data_group(std::int64_t stage,
                                                std::int64_t tensor_rank) const {
  std::vector<std::size_t> gpus;
  for (std::int64_t d = 0; d < strategy.data; ++d) gpus.push_back(gpu(stage, d, tensor_rank));
  return gpus;
}

std::int64_t SystemPlan::parameters() const { return workloads::count_parameters(workload.model); }

platform::Flops SystemPlan::flops_per_token() const {
  return make_layer_table(workload.model, {.micro_batch = 1,
                                           .sequence_length = workload.sequence_length,
                                           .precision = workload.precision})
      .flops_per_token();
}

SystemPlan make_system_plan(const Machine& machine, const Workload& workload,
                            const SystemStrategy& strategy, const Profile& profile) {
  require_possible(machine, workload, strategy);
  SystemPlan plan;
  plan.machine = machine;
  plan.workload = workload;
  plan.strategy = strategy;
  plan.table = workloads::make_layer_table(
      strategy.tensor == 1 ? workload.model
                           : workloads::tensor_slice(workload.model, strategy.tensor),
      {.micro_batch = strategy.micro_batch,
       .sequence_length = workload.sequence_length,
       .precision = workload.precision,
       .kernels = profile.eager ? kernels_of(*profile.eager) : workloads::Kernels{}});
  plan.stages = make_stages(plan);
  add_groups(plan);
  plan.memory = make_system_ledger(plan, profile);
  return plan;
}

CostedGraph make_system_graph(const SystemPlan& plan, const Profile& profile) {
  GraphWriter writer(plan, profile);
  switch (plan.strategy.system) {
    case System::megatron:
      write_megatron_step(plan, writer);
      break;
    case System::ddp:
    case System::zero1:
    case System::zero2:
    case System::zero_offload:
      write_data_parallel_step(plan, writer);
      break;
    case System::zero3:
    case System::fsdp:
    case System::zero3_offload:
      write_zero3_step(plan, writer);
      break;
    case System::patrickstar:
      write_patrickstar_step(plan, profile, writer);
      break;
    case System::harmony:
      write_harmony_step(plan, writer);
      break;
  }
  return writer.take();
}

}  // namespace offstage::scheduler::systems
