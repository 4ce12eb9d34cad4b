#include "scheduler/systems/layer_costs.h"

#include <array>
#include <string_view>

#include "platform/collective.h"
#include "scheduler/cost_model.h"
#include "scheduler/plan.h"
#include "workloads/tensor_slice.h"

namespace offstage::scheduler::systems {

using platform::Bytes;
using platform::CollectiveKind;
using platform::Machine;
using platform::Seconds;
using workloads::LayerClass;
using workloads::LayerKind;
using workloads::Operation;
using workloads::OperationKind;

namespace {

// Sequence parallelism deals the stream between attention and feed-forward to the tensor ranks
// (Korthikanti et al., arXiv 2205.05198, section 4.2.2): each works on its part of the tokens.
bool on_whole_stream(const Operation& operation) {
  constexpr std::array<std::string_view, 7> kParts{
      "attention_norm", "ffn_norm",           "attention_add",  "ffn_add",
      "final_norm",     "attention.dropout_", "ffn.dropout_add"};
  if (operation.kind != OperationKind::memory) return false;
  for (const std::string_view part : kParts) {
    if (operation.name.starts_with(part)) return true;
  }
  return false;
}

// What selective recomputation computes again: the products with keys and values, and the softmax
// between them.
bool in_attention_core(const Operation& operation) {
  return operation.kind == OperationKind::attention || operation.name.starts_with("attention.");
}

// The passes of one class of layers, as one rank of the plan computes them.
class ClassPasses {
 public:
  ClassPasses(const SystemPlan& plan, const LayerClass& layer) : plan_(plan), layer_(layer) {}

  std::vector<Operation> forward() const { return shared(layer_.forward); }

  std::vector<Operation> backward() const {
    std::vector<Operation> operations = again();
    operations.insert(operations.end(), layer_.backward.begin(), layer_.backward.end());
    return shared(operations);
  }

  // Whether backward begins with the whole forward pass.
  bool recomputed() const {
    return plan_.strategy.recompute == Recompute::full && layer_.kind == LayerKind::block;
  }

 private:
  std::vector<Operation> again() const {
    if (recomputed()) return layer_.forward;
    if (plan_.strategy.recompute != Recompute::selective) return {};
    std::vector<Operation> core;
    for (const Operation& operation : layer_.forward) {
      if (in_attention_core(operation)) core.push_back(operation);
    }
    return core;
  }

  std::vector<Operation> shared(std::vector<Operation> operations) const {
    if (!plan_.strategy.sequence_parallel) return operations;
    for (Operation& operation : operations) {
      if (on_whole_stream(operation)) operation.bytes.value /= plan_.strategy.tensor;
    }
    return operations;
  }

  const SystemPlan& plan_;
  const LayerClass& layer_;
};

// Of the stream among the tensor ranks; with sequence parallelism a reduce-scatter and an
// all-gather, which move the same bytes.
Seconds stream_reduction(const SystemPlan& plan, const Profile& profile) {
  const auto& model = plan.table.model;
  const std::int64_t bytes = element_bytes(plan.workload.precision).activation *
                             plan.strategy.micro_batch * plan.workload.sequence_length *
                             model.hidden;
  const auto ranks = static_cast<std::size_t>(plan.strategy.tensor);
  const auto time = [&](CollectiveKind kind) {
    return collective_seconds(plan.machine, profile, kind, {bytes}, ranks);
  };
  if (!plan.strategy.sequence_parallel) return time(CollectiveKind::all_reduce);
  return time(CollectiveKind::reduce_scatter) + time(CollectiveKind::all_gather);
}

}  // namespace

Seconds collective_seconds(const Machine& machine, const Profile& /*profile*/, CollectiveKind kind,
                           Bytes bytes, std::size_t ranks) {
  return ranks < 2 ? Seconds{} : platform::collective_time(machine, kind, bytes, ranks);
}

LayerCosts::LayerCosts(const SystemPlan& plan, const Profile& profile)
    : class_of_layer_(plan.table.layers) {
  const bool split = plan.strategy.tensor > 1;
  const Seconds stream = split ? stream_reduction(plan, profile) : Seconds{};
  constexpr std::int64_t kFloat = 4;
  const std::int64_t tokens = plan.strategy.micro_batch * plan.workload.sequence_length;
  const Seconds numbers =
      collective_seconds(plan.machine, profile, CollectiveKind::all_reduce, {kFloat * tokens},
                         static_cast<std::size_t>(plan.strategy.tensor));
  for (const platform::GpuModel& gpu : plan.machine.gpu_models) {
    const auto time = [&](const std::vector<Operation>& operations) {
      return pass_time(gpu, profile, operations, plan.workload.precision);
    };
    std::vector<ClassTimes> classes;
    for (const LayerClass& layer : plan.table.classes) {
      const ClassPasses passes(plan, layer);
      ClassTimes times{{time(passes.forward()), {}}, {time(passes.backward()), {}}};
      if (split) {
        const auto count = workloads::tensor_reductions(plan.table.model, layer.kind);
        const int again = passes.recomputed() ? count.forward : 0;
        times.forward.reductions = stream * count.forward + numbers * count.token_sums;
        times.backward.reductions = stream * (count.backward + again);
      }
      classes.push_back(times);
    }
    times_.push_back(std::move(classes));
  }
}

PassTime LayerCosts::forward(LayerRange layers, std::size_t gpu_model) const {
  PassTime sum;
  for (std::size_t i = layers.first; i < layers.end; ++i) {
    const PassTime& time = times_[gpu_model][class_of_layer_[i]].forward;
    sum.work += time.work;
    sum.reductions += time.reductions;
  }
  return sum;
}

PassTime LayerCosts::backward(LayerRange layers, std::size_t gpu_model) const {
  PassTime sum;
  for (std::size_t i = layers.first; i < layers.end; ++i) {
    const PassTime& time = times_[gpu_model][class_of_layer_[i]].backward;
    sum.work += time.work;
    sum.reductions += time.reductions;
  }
  return sum;
}

}  // namespace offstage::scheduler::systems
