#include "scheduler/systems/graph_writer.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "platform/error.h"
#include "scheduler/plan_ledger.h"

namespace offstage::scheduler::systems {

using platform::Bytes;
using platform::CollectiveKind;
using platform::Machine;
using platform::RouteId;
using platform::Seconds;

namespace {

CollectiveKind collective_kind(TaskKind kind) {
  switch (kind) {
    case TaskKind::all_gather:
      return CollectiveKind::all_gather;
    case TaskKind::reduce_scatter:
      return CollectiveKind::reduce_scatter;
    default:
      OFFSTAGE_CHECK(kind == TaskKind::all_reduce,
                     fmt::format("{} is no collective", to_string(kind)));
      return CollectiveKind::all_reduce;
  }
}

RouteId route_among(const SystemPlan& plan, const Gpus& gpus) {
  const auto found = std::ranges::find(plan.groups, gpus, &GroupRoute::gpus);
  OFFSTAGE_CHECK(found != plan.groups.end(),
                 fmt::format("no route among GPUs {}", fmt::join(gpus, ", ")));
  return found->route;
}

// A flow that alone on its route takes so long.
void add_flow(TaskCost& cost, const Machine& machine, RouteId route, Seconds alone) {
  cost.route = route;
  cost.amount = alone.value * route_rate(machine, route).value;
}

// What one process's threads need, whatever memory delivers.
Seconds cpu_update_time(const SystemPlan& plan, const Profile& profile, std::int64_t elements) {
  if (!profile.offload) return {};
  int cores = 0;
  for (const auto& socket : plan.machine.sockets) cores += socket.cores;
  const std::int64_t processes = plan.gpus();
  std::int64_t threads = std::max<std::int64_t>(1, cores / processes);
  if (plan.strategy.optimizer_threads > 0) {
    threads = std::min(threads, plan.strategy.optimizer_threads);
  } else if (processes > 1 && profile.offload->threads.value == OptimizerThreads::one) {
    threads = 1;
  }
  return profile.offload->core_time_per_parameter.value *
         (static_cast<double>(elements) / static_cast<double>(threads));
}

}  // namespace

GraphWriter::GraphWriter(const SystemPlan& plan, const Profile& profile)
    : plan_(plan), profile_(profile), costs_of_layers_(plan, profile) {
  graph_.steps = 1;
  for (std::size_t g = 0; g < static_cast<std::size_t>(plan.gpus()); ++g) {
    const std::string& name = plan.machine.gpus[g].name;
    engines_.push_back({add_engine(name + ".compute", EngineKind::compute, g),
                        add_engine(name + ".h2d", EngineKind::h2d, g),
                        add_engine(name + ".d2h", EngineKind::d2h, g),
                        add_engine(name + ".collective", EngineKind::collective, g),
                        add_engine(name + ".nvme_read", EngineKind::nvme_read, g),
                        add_engine(name + ".nvme_write", EngineKind::nvme_write, g),
                        add_engine(name + ".optimizer", EngineKind::optimizer, g)});
  }
}

EngineId GraphWriter::add_engine(const std::string& name, EngineKind kind, std::size_t device) {
  graph_.engines.push_back({name, kind, static_cast<std::uint16_t>(device)});
  return static_cast<EngineId>(graph_.engines.size() - 1);
}

Task GraphWriter::make_task(TaskKind kind, Payload payload, std::size_t gpu) const {
  Task task;
  task.kind = kind;
  task.payload = payload;
  task.gpu = static_cast<std::uint16_t>(gpu);
  task.socket = static_cast<std::uint16_t>(plan_.machine.gpus[gpu].socket);
  return task;
}

TaskId GraphWriter::add(const Task& task, const std::vector<EngineId>& engines, const After& after,
                        const TaskCost& cost) {
  costs_.push_back(cost);
  return graph_.add(task, engines, after, {});
}

TaskId GraphWriter::pass(TaskKind kind, const Gpus& ranks, LayerRange layers,
                         std::uint32_t micro_batch, const After& after) {
  Task task = make_task(kind, Payload::none, ranks.front());
  task.submodel = static_cast<std::uint16_t>(layers.first);
  task.micro_batch = micro_batch;
  TaskCost cost;
  std::vector<EngineId> engines;
  Seconds reductions;
  for (const std::size_t gpu : ranks) {
    const auto& device = plan_.machine.gpus[gpu];
    const PassTime time = kind == TaskKind::forward
                              ? costs_of_layers_.forward(layers, device.model)
                              : costs_of_layers_.backward(layers, device.model);
    // The ranks wait for the slowest one.
    cost.exclusive = std::max(cost.exclusive, time.work * (1.0 / device.speed));
    reductions = time.reductions;
    engines.push_back(engines_[gpu].compute);
  }
  if (ranks.size() > 1) {
    add_flow(cost, plan_.machine, route_among(plan_, ranks), reductions);
  }
  return add(task, engines, after, cost);
}

TaskId GraphWriter::forward(const Gpus& ranks, LayerRange layers, std::uint32_t micro_batch,
                            const After& after) {
  return pass(TaskKind::forward, ranks, layers, micro_batch, after);
}

TaskId GraphWriter::backward(const Gpus& ranks, LayerRange layers, std::uint32_t micro_batch,
                             const After& after) {
  return pass(TaskKind::backward, ranks, layers, micro_batch, after);
}

TaskId GraphWriter::collective(TaskKind kind, Payload payload, const Gpus& gpus, Bytes bytes,
                               Beside beside, const After& after) {
  Task task = make_task(kind, payload, gpus.front());
  task.bytes = bytes;
  TaskCost cost;
  if (gpus.size() > 1) {
    const Seconds alone =
        collective_seconds(plan_.machine, profile_, collective_kind(kind), bytes, gpus.size());
    add_flow(cost, plan_.machine, route_among(plan_, gpus), alone);
  }
  std::vector<EngineId> engines;
  for (const std::size_t gpu : gpus) {
    engines.push_back(engines_[gpu].collective);
    if (beside == Beside::nothing) engines.push_back(engines_[gpu].compute);
  }
  const TaskId id = add(task, engines, after, cost);
  if (beside == Beside::compute && profile_.eager && profile_.eager->overlap_loss.value > 0.0) {
    const Seconds lost = lone_time(plan_.machine, cost) * profile_.eager->overlap_loss.value;
    // Taken from whatever computes then: the collective itself may still wait for a copy.
    for (const std::size_t gpu : gpus) hold(gpu, kind, lost, {});
  }
  return id;
}

TaskId GraphWriter::send(const Gpus& from, const Gpus& to, Bytes bytes, const After& after) {
  Task task = make_task(TaskKind::send, Payload::activations, from.front());
  task.bytes = bytes;
  // Two ranks' all-gather moves half of its buffer each way: as many bytes over the same port.
  const Seconds alone =
      collective_seconds(plan_.machine, profile_, CollectiveKind::all_gather, bytes * 2, 2);
  Gpus both = from;
  both.insert(both.end(), to.begin(), to.end());
  std::ranges::sort(both);
  TaskCost cost;
  add_flow(cost, plan_.machine, route_among(plan_, both), alone);
  std::vector<EngineId> engines;
  for (const std::size_t gpu : both) engines.push_back(engines_[gpu].collective);
  return add(task, engines, after, cost);
}

TaskId GraphWriter::copy(const Copy& copy, const After& after) {
  const auto& device = plan_.machine.gpus[copy.gpu];
  Task task = make_task(copy.kind, copy.payload, copy.gpu);
  task.bytes = copy.bytes;
  const bool fetch = copy.kind == TaskKind::fetch;
  TaskCost cost;
  cost.exclusive = profile_.task_overhead.value;
  cost.route = (fetch ? device.h2d : device.d2h)[device.socket];
  cost.amount = static_cast<double>(copy.bytes.value);
  std::vector<EngineId> engines{fetch ? engines_[copy.gpu].h2d : engines_[copy.gpu].d2h};
  const bool pageable = !plan_.strategy.pinned_memory && profile_.offload;
  if (pageable) {
    const Seconds staged = copy.bytes / profile_.offload->pageable_copy.value;
    const Seconds flow{cost.amount / route_rate(plan_.machine, *cost.route).value};
    if (flow < staged) cost.exclusive += staged - flow;
  }
  if (pageable || copy.beside == Beside::nothing) engines.push_back(engines_[copy.gpu].compute);
  return add(task, engines, after, cost);
}

TaskId GraphWriter::drive(TaskKind kind, std::size_t gpu, Bytes bytes, const After& after) {
  const auto& drive = plan_.machine.drives[drive_of(plan_.machine, gpu)];
  Task task = make_task(kind, Payload::none, gpu);
  task.bytes = bytes;
  const bool read = kind == TaskKind::read;
  TaskCost cost;
  cost.exclusive = profile_.task_overhead.value;
  cost.route = (read ? drive.read : drive.write)[plan_.machine.gpus[gpu].socket];
  cost.amount = static_cast<double>(bytes.value);
  return add(task, {read ? engines_[gpu].nvme_read : engines_[gpu].nvme_write}, after, cost);
}

TaskId GraphWriter::update_on_gpu(std::size_t gpu, std::int64_t elements, const After& after) {
  const auto& device = plan_.machine.gpus[gpu];
  Task task = make_task(TaskKind::update, Payload::none, gpu);
  task.elements = elements;
  const double bandwidth = plan_.machine.gpu_models[device.model].memory_bandwidth.value.value *
                           profile_.optimizer_efficiency.value;
  TaskCost cost;
  if (profile_.eager) cost.exclusive = profile_.eager->step_overhead.value;
  cost.exclusive += {static_cast<double>(elements) *
                     profile_.optimizer_bytes_per_parameter_bf16.value / bandwidth / device.speed};
  return add(task, {engines_[gpu].compute}, after, cost);
}

// Cores or memory, whichever is slower: the processes update at the same time, so that those of a
// socket share its memory alike.
TaskId GraphWriter::update_on_cpu(std::size_t gpu, std::int64_t elements, const After& after) {
  const auto& machine = plan_.machine;
  const auto& socket = machine.sockets[machine.gpus[gpu].socket];
  Task task = make_task(TaskKind::update, Payload::none, gpu);
  task.elements = elements;
  TaskCost cost;
  cost.exclusive = profile_.task_overhead.value;
  cost.amount = static_cast<double>(elements) * profile_.optimizer_bytes_per_parameter_bf16.value /
                profile_.optimizer_efficiency.value;
  const auto beside = std::ranges::count_if(
      std::span(machine.gpus).first(engines_.size()),
      [&](const platform::Gpu& other) { return other.socket == machine.gpus[gpu].socket; });
  const Seconds by_memory{cost.amount * static_cast<double>(beside) /
                          route_rate(machine, socket.optimizer).value};
  const Seconds by_cores = cpu_update_time(plan_, profile_, elements);
  if (by_memory < by_cores) {
    cost.exclusive += by_cores;
    cost.amount = 0.0;
  } else {
    cost.route = socket.optimizer;
  }
  return add(task, {engines_[gpu].optimizer}, after, cost);
}

TaskId GraphWriter::hold(std::size_t gpu, TaskKind kind, Seconds seconds, const After& after) {
  TaskCost cost;
  cost.exclusive = seconds;
  return add(make_task(kind, Payload::none, gpu), {engines_[gpu].compute}, after, cost);
}

CostedGraph GraphWriter::take() {
  graph_.finish();
  return {std::move(graph_), std::move(costs_)};
}

}  // namespace offstage::scheduler::systems
