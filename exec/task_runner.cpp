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
                                          workplace.plan.gpus() * workplace.plan.micro_batches())),
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
      return forward(task);
    case TaskKind::backward:
      return backward(task);
    case TaskKind::update:
      return update(task);
    case TaskKind::norm:
      return add_norm(task);
    case TaskKind::read:
    case TaskKind::write:
      return move_moments(task);
    case TaskKind::all_reduce:
      return sum_over_hosts(task);
  }
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
  const Range range = shard_range(submodel, work.gpu);
  place_.state.fetch_weights(work.submodel, range,
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
  const Range range = shard_range(place_.plan.submodels[work.submodel], work.gpu);
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

void TaskRunner::all_gather(TaskId task) const {
  const std::size_t k = graph_.tasks[task].submodel;
  const SubModel& submodel = place_.plan.submodels[k];
  // Resident shards lie outside the slots, so that every GPU's slot lacks them, its owner's too.
  const bool resident = is_resident(submodel);
  for (std::int64_t from = 0; from < place_.plan.gpus(); ++from) {
    const Range range = shard_range(submodel, from);
    const std::int64_t begin = range.begin * weight_bytes_;
    const std::byte* const shard =
        resident ? place_.state.resident_weights(k, from) : gpu_bytes(task, from) + begin;
    for (std::int64_t to = 0; to < place_.plan.gpus(); ++to) {
      if (resident || from != to) {
        copy_bytes(shard, range.size() * weight_bytes_, gpu_bytes(task, to) + begin);
      }
    }
  }
}

void TaskRunner::reduce_scatter(TaskId task) const {
  for (std::int64_t owner = 0; owner < place_.plan.gpus(); ++owner) {
    const Range range = shard_range(place_.plan.submodels[graph_.tasks[task].submodel], owner);
    // Whoever owns the shard, the sum is taken from GPU 0 upwards, in a block that stays in the
    // cache: the owner's own part is read at its turn, so it can't hold the sum before.
    constexpr std::int64_t kBlock = 1024;
    std::array<float, kBlock> sum{};
    for (std::int64_t begin = range.begin; begin < range.end; begin += kBlock) {
      const std::int64_t count = std::min(kBlock, range.end - begin);
      copy_floats(gpu_slot(task, 0) + begin, count, sum.data());
      for (std::int64_t gpu = 1; gpu < place_.plan.gpus(); ++gpu) {
        add_floats(gpu_slot(task, gpu) + begin, count, sum.data());
      }
      copy_floats(sum.data(), count, gpu_slot(task, owner) + begin);
    }
  }
}

void TaskRunner::load_tokens(TaskId task) const {
  const Task& work = graph_.tasks[task];
  const std::int64_t rows = place_.plan.strategy.micro_batch;
  const auto length = static_cast<std::size_t>(place_.plan.workload.sequence_length);
  const std::int64_t gpu = rank_of(place_) * place_.plan.gpus() + work.gpu;  // among all hosts'
  const std::int64_t first = (gpu * place_.plan.micro_batches() + work.micro_batch) * rows;
  const auto inputs = place_.token_ids.inputs(work.gpu, work.micro_batch);
  const auto targets = place_.token_ids.targets(work.gpu, work.micro_batch);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::size_t begin = static_cast<std::size_t>(row) * length;
    place_.sampler.sequence(first_step_ + work.step, first + row, inputs.subspan(begin, length),
                            targets.subspan(begin, length));
  }
}

Tokens TaskRunner::tokens(TaskId task) const {
  const Task& work = graph_.tasks[task];
  return {.inputs = place_.token_ids.inputs(work.gpu, work.micro_batch).data(),
          .targets = place_.token_ids.targets(work.gpu, work.micro_batch).data()};
}

StoredArrays TaskRunner::stored_arrays(TaskId task, SlotRole output_role) const {
  const std::byte* weights = bytes(task, SlotRole::weights);
  if (weights == nullptr) {
    // Without a slot there is one GPU, whose shard is everything.
    weights = place_.state.resident_weights(graph_.tasks[task].submodel, 0);
  }
  return {.weights = weights,
          .input = bytes(task, SlotRole::input),
          .output = bytes(task, output_role)};
}

void TaskRunner::forward(TaskId task) {
  const Task& work = graph_.tasks[task];
  const ArenaScope scope(place_.arenas.at(place_.plan.machine.gpus[work.gpu].pool),
                         {graph_.describe(task), "working space"});
  const SubModelCompute& compute = place_.compute[work.submodel];
  if (compute.has_embedding()) {
    // Nothing reads the previous step's tokens any more: this task's weights are its outcome.
    load_tokens(task);
  }
  const ComputeArrays arrays(place_.plan, place_.plan.submodels[work.submodel],
                             stored_arrays(task, SlotRole::output));
  if (const SlotUse* const keeping = use(task, SlotRole::kept)) {
    kept_[keeping->slot] = compute.forward_keep(arrays.weights(), arrays.input(), arrays.output());
  } else {
    compute.forward(arrays.weights(), tokens(task), arrays.input(), arrays.output());
  }
  arrays.store_output();
}

void TaskRunner::backward(TaskId task) {
  const Task& work = graph_.tasks[task];
  const SubModel& submodel = place_.plan.submodels[work.submodel];
  const SubModelCompute& compute = place_.compute[work.submodel];
  const ArenaScope scope(place_.arenas.at(place_.plan.machine.gpus[work.gpu].pool),
                         {graph_.describe(task), "working space"});
  const ComputeArrays arrays(place_.plan, submodel, stored_arrays(task, SlotRole::output_gradient));
  float* const gradients = slot(task, SlotRole::gradients);
  // The occupant's first task overwrites what the sub-model before it left in the slot.
  const bool first = use(task, SlotRole::gradients)->acquires;
  const SlotUse* const keeping = use(task, SlotRole::kept);
  const double loss =
      compute.backward(arrays.weights(), tokens(task),
                       {.input = arrays.input(),
                        .output_gradient = arrays.output(),
                        .input_gradient = arrays.input(),
                        .loss_tokens = place_.plan.workload.tokens_per_step(),
                        .gradients = {.own = gradients + submodel.borrowed,
                                      .tied = submodel.borrowed > 0 ? gradients : nullptr,
                                      .accumulate = !first}},
                       keeping != nullptr ? std::move(kept_[keeping->slot]) : nullptr);
  arrays.store_input();
  if (compute.has_head()) {
    set_loss(task, loss);
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
  const auto gpus = static_cast<std::size_t>(place_.plan.gpus());
  const auto micro_batches = static_cast<std::size_t>(place_.plan.micro_batches());
  const auto hosts = static_cast<std::size_t>(hosts_of(place_));
  const auto rank = static_cast<std::size_t>(rank_of(place_));
  const std::size_t gpu = (work.step * hosts + rank) * gpus + work.gpu;
  loss_sums_[gpu * micro_batches + work.micro_batch] = sum;
}

const SlotUse* TaskRunner::use(TaskId task, SlotRole role) const {
  const auto uses = graph_.uses(task);
  const auto found = std::find_if(uses.begin(), uses.end(),
                                  [role](const SlotUse& use) { return use.role == role; });
  return found == uses.end() ? nullptr : &*found;
}

std::byte* TaskRunner::bytes(TaskId task, SlotRole role) const {
  const SlotUse* const found = use(task, role);
  return found != nullptr ? place_.slots.bytes(found->slot) : nullptr;
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
