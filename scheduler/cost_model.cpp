#include "scheduler/cost_model.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "platform/collective.h"
#include "platform/error.h"
#include "platform/hosts.h"
#include "platform/virtual_machine.h"
#include "scheduler/core_costs.h"
#include "scheduler/plan_ledger.h"
#include "scheduler/roofline.h"
#include "scheduler/working_memory.h"
#include "workloads/tensor_slice.h"

namespace offstage::scheduler {

using platform::Bytes;
using platform::BytesPerSecond;
using platform::CollectiveKind;
using platform::GpuModel;
using platform::Machine;
using platform::Precision;
using platform::RouteId;
using platform::Seconds;
using workloads::Operation;

namespace {

// As routes over cores carry them.
double nanoseconds(Seconds core_time) { return core_time.value * 1e9; }

CollectiveKind collective_kind(TaskKind kind) {
  return kind == TaskKind::all_gather ? CollectiveKind::all_gather : CollectiveKind::reduce_scatter;
}

struct PassTimes {
  Seconds forward;
  Seconds backward;  // without recomputation
};

// Recomputing a sub-model's last layer stops where only the layer's output is left to be computed:
// nobody reads that again. A block ends with a product and what follows it, unless a norm comes
// last, whose backward needs the product. What makes the product's input from the product before
// (the activation) is computed again in backward in any case.
std::vector<Operation> last_recomputation(const workloads::Model& model,
                                          const workloads::LayerClass& layer) {
  if (layer.kind == workloads::LayerKind::embedding) return {};
  constexpr int kNormsWithOneLast = 4;
  if (layer.kind == workloads::LayerKind::head || model.norms_per_block == kNormsWithOneLast) {
    return layer.forward;
  }
  const auto is_product = [](const Operation& operation) {
    return operation.kind == workloads::OperationKind::gemm;
  };
  const auto end = layer.forward.rend();
  const auto last = std::find_if(layer.forward.rbegin(), end, is_product);
  if (last == end) return layer.forward;
  const auto before = std::find_if(std::next(last), end, is_product);
  return {layer.forward.begin(), before.base()};
}

// Costs tasks one by one, keeping what the tasks of a sub-model have in common.
class CostBook {
 public:
  CostBook(const Plan& plan, const Profile& profile)
      : plan_(plan), profile_(profile), machine_(plan.machine) {
    if (platform::has_virtual_gpus(machine_)) cores_.emplace(plan, profile);
    for (const auto& submodel : plan.submodels) {
      memory_.push_back(task_memory(plan, submodel));
    }
    for (const GpuModel& model : machine_.gpu_models) submodel_times_.push_back(times_on(model));
    if (plan.strategy.tensor_ways > 1) reductions_ = reduction_times();
  }

  TaskCost cost(const Task& task) const {
    switch (task.kind) {
      case TaskKind::fetch:
      case TaskKind::offload:
        return copy(task);
      case TaskKind::all_gather:
      case TaskKind::reduce_scatter:
        return collective(task);
      case TaskKind::all_reduce:
        return over_hosts(task);
      case TaskKind::forward:
      case TaskKind::backward:
        return compute(task);
      case TaskKind::update:
        return update(task);
      case TaskKind::norm:
        return norm(task);
      case TaskKind::read:
      case TaskKind::write:
        return nvme(task);
      case TaskKind::send:
        break;  // not in our own step
    }
    OFFSTAGE_CHECK(false, fmt::format("task kind {} has no cost", static_cast<int>(task.kind)));
    return {};
  }

 private:
  // Every sub-model's tasks on a GPU of this model at full speed: a backward task recomputes. The
  // layers of a class are timed once.
  std::vector<PassTimes> times_on(const GpuModel& model) const {
    const auto time = [&](const std::vector<Operation>& operations) {
      return pass_time(model, profile_, operations,
                       compute_precision(plan_.machine, plan_.workload));
    };
    std::vector<Seconds> forward, recompute_last, backward;  // by class
    for (const auto& layer : plan_.table.classes) {
      forward.push_back(time(layer.forward));
      recompute_last.push_back(time(last_recomputation(plan_.table.model, layer)));
      backward.push_back(time(layer.backward));
    }
    std::vector<PassTimes> times;
    for (const auto& submodel : plan_.submodels) {
      PassTimes sum;
      for (std::size_t i = submodel.first_layer; i < submodel.end_layer; ++i) {
        const std::size_t layer = plan_.table.layers[i];
        const bool last = i + 1 == submodel.end_layer;
        sum.forward += forward[layer];
        if (!submodel.keeps_activations) {
          sum.backward += last ? recompute_last[layer] : forward[layer];
        }
        sum.backward += backward[layer];
      }
      times.push_back(sum);
    }
    return times;
  }

  // Of every sub-model's all-reduces among the ranks of a tensor split, alone on the machine. The
  // recomputation spares the one that yields the sub-model's output.
  std::vector<PassTimes> reduction_times() const {
    const auto ways = static_cast<std::size_t>(plan_.strategy.tensor_ways);
    const auto reduce = [&](platform::Bytes bytes) {
      if (cores_) return cores_->reduction(bytes);
      return collective_time(machine_, CollectiveKind::all_reduce, bytes, ways);
    };
    constexpr std::int64_t kFloat = 4;
    // Summed as computed, whatever a boundary is stored in.
    const std::int64_t element =
        element_bytes(compute_precision(machine_, plan_.workload)).activation;
    const Seconds stream = reduce({element * plan_.strategy.micro_batch *
                                   plan_.workload.sequence_length * plan_.workload.model.hidden});
    const Seconds numbers =
        reduce({kFloat * plan_.strategy.micro_batch * plan_.workload.sequence_length});
    std::vector<PassTimes> times;
    for (const auto& submodel : plan_.submodels) {
      PassTimes sum;
      for (std::size_t i = submodel.first_layer; i < submodel.end_layer; ++i) {
        const auto kind = plan_.table.layer(i).kind;
        const auto count = workloads::tensor_reductions(plan_.workload.model, kind);
        sum.forward += stream * count.forward + numbers * count.token_sums;
        const bool recomputed =
            !submodel.keeps_activations && kind != workloads::LayerKind::embedding;
        const int spared = i + 1 == submodel.end_layer ? 1 : 0;
        const int again = recomputed ? std::max(0, count.forward - spared) : 0;
        sum.backward += stream * (count.backward + again) + numbers * count.token_sums;
      }
      times.push_back(sum);
    }
    return times;
  }

  // A flow's cost begins with what the executor spends on any task.
  TaskCost over(RouteId route) const {
    TaskCost cost;
    cost.exclusive = profile_.task_overhead.value;
    cost.route = route;
    return cost;
  }

  TaskCost copy(const Task& task) const {
    const auto& gpu = machine_.gpus[task.gpu];
    const auto& routes = task.kind == TaskKind::fetch ? gpu.h2d : gpu.d2h;
    TaskCost cost = over(routes[task.socket]);
    cost.amount = cores_ ? nanoseconds(cores_->copy(task)) : static_cast<double>(task.bytes.value);
    if (const auto throttle = copy_throttle_of(machine_, task.gpu)) {
      // A copy engine that is held back rests for what is left of its time when the copy is done.
      const Seconds allowed = task.bytes / *throttle;
      const Seconds needed{cost.amount / route_rate(machine_, *cost.route).value};
      if (needed < allowed) cost.exclusive += allowed - needed;
    }
    return cost;
  }

  TaskCost collective(const Task& task) const {
    OFFSTAGE_CHECK(machine_.collective_route.has_value(),
                   fmt::format("{} has no route for collectives", machine_.name));
    TaskCost cost = over(*machine_.collective_route);
    if (cores_) {
      cost.amount = nanoseconds(cores_->collective(task));
      return cost;
    }
    const Seconds alone = collective_time(machine_, collective_kind(task.kind), task.bytes,
                                          static_cast<std::size_t>(plan_.replicas()));
    cost.amount = alone.value * route_rate(machine_, *cost.route).value;
    return cost;
  }

  // Bytes on the network only: the core time of its copies and sums is not known to the plan.
  TaskCost over_hosts(const Task& task) const {
    OFFSTAGE_CHECK(machine_.network_route.has_value(), machine_.name + " is one host");
    TaskCost cost = over(*machine_.network_route);
    cost.amount = platform::ring_bytes(machine_.hosts, task.bytes);
    return cost;
  }

  TaskCost compute(const Task& task) const {
    const bool forward = task.kind == TaskKind::forward;
    const auto on_member = [&](std::size_t gpu) {
      const PassTimes& times = submodel_times_[machine_.gpus[gpu].model][task.submodel];
      const Seconds work = forward ? times.forward : times.backward;
      return on_gpu(gpu, cores_ ? work + cores_->widening(task.submodel, forward) : work);
    };
    TaskCost cost = on_member(task.gpu);
    if (!reductions_.empty()) {
      // The ranks wait for the slowest one.
      const auto ways = static_cast<std::size_t>(plan_.strategy.tensor_ways);
      for (std::size_t g = task.gpu; g < task.gpu + ways; ++g) {
        cost.exclusive = std::max(cost.exclusive, on_member(g).exclusive);
      }
      const PassTimes& of_submodel = reductions_[task.submodel];
      const Seconds reductions = forward ? of_submodel.forward : of_submodel.backward;
      cost.route = plan_.group_routes[static_cast<std::size_t>(plan_.shard_of(task.gpu))];
      if (cores_) {  // summing, too, is work of the members' cores
        cost.amount = nanoseconds(reductions) * static_cast<double>(ways);
        for (std::size_t g = task.gpu; g < task.gpu + ways; ++g) {
          cost.amount += on_member(g).amount;
        }
      } else {
        cost.amount = reductions.value * route_rate(machine_, *cost.route).value;
      }
    }
    cost.transient = forward ? memory_[task.submodel].forward : memory_[task.submodel].backward;
    return cost;
  }

  // Work that a GPU's compute engine does in `work` at full speed.
  TaskCost on_gpu(std::size_t index, Seconds work) const {
    const auto& gpu = machine_.gpus[index];
    const Seconds slowed = work * (1.0 / gpu.speed);
    TaskCost cost;
    if (gpu.compute_route) {
      cost = over(*gpu.compute_route);
      cost.amount = nanoseconds(slowed);
    } else {
      cost.exclusive = profile_.task_overhead.value + slowed;
    }
    return cost;
  }

  // Of one parameter's update: state read and written, gradient read.
  double optimizer_bytes() const {
    const double with_f32_moments = plan_.workload.precision == Precision::bf16
                                        ? profile_.optimizer_bytes_per_parameter_bf16.value
                                        : profile_.optimizer_bytes_per_parameter_f32.value;
    // Two moments, read and written, 2 bytes less each.
    constexpr double kSavedByBf16Moments = 8.0;
    const bool bf16 = plan_.strategy.moments == MomentPrecision::bf16;
    return with_f32_moments - (bf16 ? kSavedByBf16Moments : 0.0);
  }

  TaskCost update(const Task& task) const {
    const double bytes = static_cast<double>(task.elements) * optimizer_bytes();
    if (plan_.submodels[task.submodel].state == StatePlace::resident) {
      const auto& model = machine_.gpu_models[machine_.gpus[task.gpu].model];
      const double bandwidth =
          model.memory_bandwidth.value.value * profile_.memory_efficiency.value;
      return on_gpu(task.gpu, cores_ ? cores_->update(task) : Seconds{bytes / bandwidth});
    }
    TaskCost cost = over(machine_.sockets[task.socket].optimizer);
    cost.amount =
        (cores_ ? nanoseconds(cores_->update(task)) : bytes) / profile_.optimizer_efficiency.value;
    return cost;
  }

  // One pass over a shard's gradients.
  TaskCost norm(const Task& task) const {
    TaskCost cost = over(machine_.sockets[task.socket].optimizer);
    const std::int64_t bytes =
        task.elements * element_bytes(plan_.workload.precision).sent_gradient;
    cost.amount = cores_ ? nanoseconds(cores_->norm(task)) : static_cast<double>(bytes);
    return cost;
  }

  TaskCost nvme(const Task& task) const {
    const auto& drive = machine_.drives[drive_of(machine_, task.gpu)];
    TaskCost cost =
        over(task.kind == TaskKind::read ? drive.read[task.socket] : drive.write[task.socket]);
    cost.amount = static_cast<double>(task.bytes.value);
    return cost;
  }

  const Plan& plan_;
  const Profile& profile_;
  const Machine& machine_;
  std::optional<CoreCosts> cores_;                      // of virtual GPUs
  std::vector<ComputeMemory> memory_;                   // by sub-model
  std::vector<std::vector<PassTimes>> submodel_times_;  // by GPU model, sub-model
  std::vector<PassTimes> reductions_;  // by sub-model; empty without a tensor split
};

}  // namespace

BytesPerSecond route_rate(const Machine& machine, RouteId route) {
  const auto& links = machine.routes[route].links;
  double narrowest = std::numeric_limits<double>::infinity();
  for (const auto link : links) {
    const auto times = std::count(links.begin(), links.end(), link);
    const double share = machine.links[link].capacity.value.value / static_cast<double>(times);
    narrowest = std::min(narrowest, share);
  }
  return {narrowest};
}

Seconds lone_time(const Machine& machine, const TaskCost& cost) {
  if (!cost.route) return cost.exclusive;
  const Seconds flow{cost.amount / route_rate(machine, *cost.route).value};
  return cost.exclusive + machine.routes[*cost.route].latency + flow;
}

std::vector<TaskCost> make_costs(const Plan& plan, const Profile& profile, const TaskGraph& graph) {
  const CostBook book(plan, profile);
  std::vector<TaskCost> costs;
  costs.reserve(graph.size());
  for (const Task& task : graph.tasks) costs.push_back(book.cost(task));
  return costs;
}

std::vector<Operation> compute_operations(const Plan& plan, std::size_t submodel, TaskKind kind) {
  const SubModel& part = plan.submodels[submodel];
  std::vector<Operation> operations;
  const auto append = [&](const std::vector<Operation>& more) {
    operations.insert(operations.end(), more.begin(), more.end());
  };
  const bool backward = kind == TaskKind::backward;
  for (std::size_t i = part.first_layer; i < part.end_layer; ++i) {
    if (backward && part.keeps_activations) break;
    const auto& layer = plan.table.layer(i);
    const bool spared = backward && i + 1 == part.end_layer;
    append(spared ? last_recomputation(plan.table.model, layer) : layer.forward);
  }
  if (backward) {
    for (std::size_t i = part.end_layer; i-- > part.first_layer;) {
      append(plan.table.layer(i).backward);
    }
  }
  return operations;
}

Seconds pass_time(const GpuModel& gpu, const Profile& profile,
                  const std::vector<Operation>& operations, Precision precision) {
  Seconds sum;
  for (const Operation& operation : operations) {
    sum += operation_time(gpu, profile, operation, precision);
  }
  return sum;
}

}  // namespace offstage::scheduler
