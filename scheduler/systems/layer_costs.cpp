#include "scheduler/systems/layer_costs.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "platform/collective.h"
#include "scheduler/cost_model.h"
#include "scheduler/plan.h"
#include "scheduler/roofline.h"
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

  // What backward begins with, and what then follows.
  std::vector<Operation> recomputed_part() const { return shared(again()); }
  std::vector<Operation> gradients() const { return shared(layer_.backward); }

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

// Collectives in line with a layer's kernels.
struct InLine {
  Seconds time;  // alone on the machine
  int count = 0;
};

// Among the tensor ranks of a plan.
class LineReductions {
 public:
  LineReductions(const SystemPlan& plan, const Profile& profile)
      : model_(plan.table.model), split_(plan.strategy.tensor > 1) {
    if (!split_) return;
    const std::int64_t tokens = plan.strategy.micro_batch * plan.workload.sequence_length;
    const Bytes stream{element_bytes(plan.workload.precision).activation * tokens * model_.hidden};
    const auto ranks = static_cast<std::size_t>(plan.strategy.tensor);
    const auto time = [&](CollectiveKind kind, Bytes bytes) {
      return collective_seconds(plan.machine, profile, kind, bytes, ranks);
    };
    constexpr std::int64_t kFloat = 4;
    numbers_ = time(CollectiveKind::all_reduce, {kFloat * tokens});
    if (!plan.strategy.sequence_parallel) {
      stream_ = time(CollectiveKind::all_reduce, stream);
      return;
    }
    // A reduce-scatter and an all-gather, which move the same bytes.
    stream_ =
        time(CollectiveKind::reduce_scatter, stream) + time(CollectiveKind::all_gather, stream);
    collectives_of_stream_ = 2;
  }

  InLine forward(LayerKind kind) const {
    if (!split_) return {};
    const auto count = workloads::tensor_reductions(model_, kind);
    InLine sums = of_stream(count.forward);
    sums.time += numbers_ * count.token_sums;
    sums.count += count.token_sums;
    return sums;
  }
  InLine again(LayerKind kind) const {
    return split_ ? of_stream(workloads::tensor_reductions(model_, kind).forward) : InLine{};
  }
  InLine backward(LayerKind kind) const {
    return split_ ? of_stream(workloads::tensor_reductions(model_, kind).backward) : InLine{};
  }

 private:
  InLine of_stream(int sums) const { return {stream_ * sums, sums * collectives_of_stream_}; }

  const workloads::Model& model_;
  bool split_;
  Seconds stream_, numbers_;
  int collectives_of_stream_ = 1;
};

// What a pass issues through Python's modules (a forward, or what backward recomputes), and through
// the autograd engine.
struct PassParts {
  struct Part {
    std::vector<Operation> operations;
    InLine reductions;
  };
  Part modules, autograd;
};

struct PassPricer {
  const platform::GpuModel& gpu;
  const Profile& profile;
  platform::Precision precision;

  // scheduler/eager_stack.h, Note [Host and GPU side by side].
  PassTime price(const PassParts& parts) const {
    const Seconds reductions = parts.modules.reductions.time + parts.autograd.reductions.time;
    if (!profile.eager) {
      return {pass_time(gpu, profile, parts.modules.operations, precision) +
                  pass_time(gpu, profile, parts.autograd.operations, precision),
              reductions};
    }
    const int waits = parts.modules.reductions.count + parts.autograd.reductions.count;
    const Seconds work = work_of(parts.modules.operations) + work_of(parts.autograd.operations) +
                         profile.eager->collective_wait.value * waits;
    const Seconds host =
        profile.eager->forward_launch_interval.value * issued(parts.modules) +
        std::max(gpu.launch_interval.value, profile.launch_interval.value) * issued(parts.autograd);
    return {std::max(work, host - reductions), reductions};
  }

 private:
  Seconds work_of(const std::vector<Operation>& operations) const {
    Seconds sum;
    for (const Operation& operation : operations) {
      sum += operation_work(gpu, profile, operation, precision);
    }
    return sum;
  }
  static int issued(const PassParts::Part& part) {
    int kernels = part.reductions.count;
    for (const Operation& operation : part.operations) kernels += operation.kernels;
    return kernels;
  }
};

}  // namespace

Seconds collective_seconds(const Machine& machine, const Profile& profile, CollectiveKind kind,
                           Bytes bytes, std::size_t ranks) {
  if (ranks < 2) return {};
  const Seconds alone = platform::collective_time(machine, kind, bytes, ranks);
  return profile.eager ? alone * (1.0 / profile.eager->collective_efficiency.value) : alone;
}

LayerCosts::LayerCosts(const SystemPlan& plan, const Profile& profile)
    : class_of_layer_(plan.table.layers) {
  const LineReductions reductions(plan, profile);
  for (const platform::GpuModel& gpu : plan.machine.gpu_models) {
    const PassPricer pricer{gpu, profile, plan.workload.precision};
    std::vector<ClassTimes> classes;
    for (const LayerClass& layer : plan.table.classes) {
      const ClassPasses passes(plan, layer);
      const InLine forward = reductions.forward(layer.kind);
      const InLine again = passes.recomputed() ? reductions.again(layer.kind) : InLine{};
      const InLine backward = reductions.backward(layer.kind);
      classes.push_back(
          {pricer.price({{passes.forward(), forward}, {}}),
           pricer.price({{passes.recomputed_part(), again}, {passes.gradients(), backward}})});
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
