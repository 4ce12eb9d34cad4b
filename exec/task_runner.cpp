#include "exec/task_runner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "exec/finite.h"
#include "platform/error.h"

namespace offstage::exec {

using scheduler::Payload;
using scheduler::Range;
using scheduler::SlotRole;
using scheduler::SlotUse;
using scheduler::StatePlace;
using scheduler::SubModel;
using scheduler::Task;
using scheduler::TaskId;
using scheduler::TaskKind;

namespace {

void copy_bytes(const std::byte* from, std::int64_t bytes, std::byte* to) {
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void copy_floats(const float* from, std::int64_t count, float* to) { std::copy_n(from, count, to); }

bool is_resident(const SubModel& submodel) {
  return submodel.state == StatePlace::resident || submodel.state == StatePlace::resident_weights;
}

void add_floats(const float* from, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] += from[i];
  }
}

}  // namespace

TaskRunner::TaskRunner(const Workplace& workplace, const scheduler::TaskGraph& graph,
                       std::int64_t first_step)
    : place_(workplace),
      graph_(graph),
      first_step_(first_step),
      bf16_(workplace.plan.workload.precision == platform::Precision::bf16),
      weight_bytes_(scheduler::element_bytes(workplace.plan.workload.precision).weight),
      loss_sums_(static_cast<std::size_t>(graph.steps * hosts_of(workplace) *
                                          workplace.plan.step_micro_batches())),
      squares_(graph.steps * workplace.plan.submodels.size() *
               static_cast<std::size_t>(workplace.plan.gpus())),
      kept_(graph.slots.size()),
      decay_runs_(workplace.plan, workplace.settings.decay_all) {
  for (const platform::Socket& socket : workplace.plan.machine.sockets) {
    workers_.emplace_back(socket.optimizer_threads);
  }
}

void TaskRunner::run(TaskId task) {
  const Task& work = graph_.tasks[task];
  const bool of_activations = work.payload == Payload::activations;
  switch (work.kind) {
    case TaskKind::fetch:
      return of_activations ? copy_activation(task) : copy_weights_in(task);
    case TaskKind::offload:
      return of_activations ? copy_activation(task) : send_gradients(task);
    case TaskKind::all_gather:
      return all_gather(task);
    case TaskKind::reduce_scatter:
      return reduce_scatter(task);
    case TaskKind::forward:
    case TaskKind::backward:
      return compute(task);
    case TaskKind::update:
      return update(task);
    case TaskKind::norm:
      return add_norm(task);
    case TaskKind::read:
    case TaskKind::write:
      return move_moments(task);
    case TaskKind::all_reduce:
      return sum_over_hosts(task);
    case TaskKind::send:
      break;
  }
  throw Error(ErrorCode::device,
              fmt::format("{}: virtual GPUs have no such task", graph_.describe(task)));
}

double TaskRunner::loss(std::uint32_t step) const {
  const std::size_t per_step = loss_sums_.size() / graph_.steps;
  double sum = 0.0;
  for (std::size_t i = step * per_step; i < (step + 1) * per_step; ++i) {
    sum += loss_sums_[i];
  }
  return sum / static_cast<double>(place_.plan.workload.tokens_per_step());
}

void TaskRunner::copy_weights_in(TaskId task) const {
  const Task& work = graph_.tasks[task];
  const SubModel& submodel = place_.plan.submodels[work.submodel];
  if (submodel.state == StatePlace::resident_weights) {
    return place_.state.renew_resident_weights(work.submodel, work.gpu);
  }
  const Range range = shard_of_gpu(place_.plan, submodel, work.gpu);
  place_.state.fetch_weights({work.submodel, work.gpu, range},
                             bytes(task, SlotRole::weights) + range.begin * weight_bytes_);
}

void TaskRunner::copy_activation(TaskId task) const {
  const Task& work = graph_.tasks[task];
  std::byte* const host = bytes(task, SlotRole::host);
  std::byte* device = bytes(task, SlotRole::input);
  if (device == nullptr) {
    device = bytes(task, SlotRole::output);
  }
  const bool fetch = work.kind == TaskKind::fetch;
  copy_bytes(fetch ? host : device, work.bytes.value, fetch ? device : host);
}

// In bf16 trainings gradients are rounded here, summed over micro-batches and GPUs before.
void TaskRunner::send_gradients(TaskId task) const {
  const Task& work = graph_.tasks[task];
  const Range range = shard_of_gpu(place_.plan, place_.plan.submodels[work.submodel], work.gpu);
  const float* const gradients = slot(task, SlotRole::gradients) + range.begin;
  std::byte* const host = bytes(task, SlotRole::host);
  // Looked at while they are in the cache, before they can change a weight.
  constexpr std::int64_t kBlock = 4096;
  for (std::int64_t begin = 0; begin < range.size(); begin += kBlock) {
    const std::int64_t count = std::min(kBlock, range.size() - begin);
    require_finite(task, {gradients + begin, static_cast<std::size_t>(count)});
    if (bf16_) {
      narrow(gradients + begin, count, reinterpret_cast<std::uint16_t*>(host) + begin);
    } else {
      copy_floats(gradients + begin, count, reinterpret_cast<float*>(host) + begin);
    }
  }
}

void TaskRunner::require_finite(TaskId task, std::span<const float> gradients) const {
  if (!all_finite(gradients)) {
    const Task& work = graph_.tasks[task];
    const SubModel& submodel = place_.plan.submodels[work.submodel];
    throw Error(
        ErrorCode::device,
        fmt::format("step {}: the gradients of sub-model {} (layers {} to {}) are not finite "
                    "(NaN or infinity); a lower learning rate, warm-up or clipping may help",
                    first_step_ + work.step + 1, work.submodel, submodel.first_layer,
                    submodel.end_layer - 1));
  }
}

// With a tensor split rank by rank, among the GPUs that hold the same slice.
void TaskRunner::all_gather(TaskId task) const {
  const std::size_t k = graph_.tasks[task].submodel;
  const SubModel& submodel = place_.plan.submodels[k];
  const std::int64_t gpus = place_.plan.gpus(), ways = place_.plan.strategy.tensor_ways;
  // Resident shards lie outside the slots, so that every GPU's slot lacks them, its owner's too.
  const bool resident = is_resident(submodel);
  for (std::int64_t from = 0; from < gpus; ++from) {
    const Range range = shard_of_gpu(place_.plan, submodel, from);
    const std::int64_t begin = range.begin * weight_bytes_;
    const std::byte* const shard =
        resident ? place_.state.resident_weights(k, from) : gpu_bytes(task, from) + begin;
    for (std::int64_t to = from % ways; to < gpus; to += ways) {
      if (resident || from != to) {
        copy_bytes(shard, range.size() * weight_bytes_, gpu_bytes(task, to) + begin);
      }
    }
  }
}

void TaskRunner::reduce_scatter(TaskId task) const {
  const std::int64_t gpus = place_.plan.gpus(), ways = place_.plan.strategy.tensor_ways;
  for (std::int64_t owner = 0; owner < gpus; ++owner) {
    const Range range =
        shard_of_gpu(place_.plan, place_.plan.submodels[graph_.tasks[task].submodel], owner);
    const std::int64_t lowest = owner % ways;
    // Whoever owns the shard, the sum is taken from the lowest GPU upwards, in a block that stays
    // in the cache: the owner's own part is read at its turn, so it can't hold the sum before.
    constexpr std::int64_t kBlock = 1024;
    std::array<float, kBlock> sum{};
    for (std::int64_t begin = range.begin; begin < range.end; begin += kBlock) {
      const std::int64_t count = std::min(kBlock, range.end - begin);
      copy_floats(gpu_slot(task, lowest) + begin, count, sum.data());
      for (std::int64_t gpu = lowest + ways; gpu < gpus; gpu += ways) {
        add_floats(gpu_slot(task, gpu) + begin, count, sum.data());
      }
      copy_floats(sum.data(), count, gpu_slot(task, owner) + begin);
    }
  }
}

void TaskRunner::set_loss(TaskId task, double sum) {
  const Task& work = graph_.tasks[task];
  if (!std::isfinite(sum)) {
    throw Error(ErrorCode::device,
                fmt::format("step {}: the loss of micro-batch {} on gpu{} is {}; a lower learning "
                            "rate, warm-up or clipping may help",
                            first_step_ + work.step + 1, work.micro_batch, work.gpu, sum));
  }
  const std::int64_t before = work.step * hosts_of(place_) + rank_of(place_);  // hosts' parts
  const std::int64_t index = before * place_.plan.step_micro_batches() +
                             place_.plan.first_micro_batch(work.gpu) + work.micro_batch;
  loss_sums_[static_cast<std::size_t>(index)] = sum;
}

const SlotUse* TaskRunner::use(const Part& part, SlotRole role) const {
  const auto uses = graph_.uses(part.task);
  const auto found = std::find_if(uses.begin(), uses.end(), [&](const SlotUse& use) {
    return use.role == role && graph_.slots[use.slot].gpu == part.gpu;
  });
  return found == uses.end() ? nullptr : &*found;
}

std::byte* TaskRunner::bytes(const Part& part, SlotRole role) const {
  const SlotUse* const found = use(part, role);
  return found != nullptr ? place_.slots.bytes(found->slot) : nullptr;
}

std::byte* TaskRunner::bytes(TaskId task, SlotRole role) const {
  return bytes({task, graph_.tasks[task].gpu}, role);
}

float* TaskRunner::slot(TaskId task, SlotRole role) const {
  return reinterpret_cast<float*>(bytes(task, role));
}

float* TaskRunner::gpu_slot(TaskId task, std::int64_t gpu) const {
  return reinterpret_cast<float*>(gpu_bytes(task, gpu));
}

std::byte* TaskRunner::gpu_bytes(TaskId task, std::int64_t gpu) const {
  for (const SlotUse& use : graph_.uses(task)) {
    if (graph_.slots[use.slot].gpu == gpu) {
      return place_.slots.bytes(use.slot);
    }
  }
  throw Error(ErrorCode::device, fmt::format("{}: no slot of gpu{}", graph_.describe(task), gpu));
}

}  // namespace offstage::exec
