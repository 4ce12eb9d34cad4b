#include "exec/stream_tasks.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::exec {

using platform::Bytes;
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

constexpr std::int64_t kLossBytes = 4;

// Inputs and targets of a micro-batch; whoever is given work on them holds them.
struct TokenLists {
  std::vector<std::int64_t> inputs, targets;
  Tokens view() const { return {inputs.data(), targets.data()}; }
};

TokenLists read_tokens(const Workplace& place, const Task& task, std::int64_t step) {
  const std::int64_t rows = place.plan.strategy.micro_batch;
  const auto length = static_cast<std::size_t>(place.plan.workload.sequence_length);
  const std::int64_t first = (place.plan.first_micro_batch(task.gpu) + task.micro_batch) * rows;
  TokenLists lists;
  lists.inputs.resize(static_cast<std::size_t>(rows) * length);
  lists.targets.resize(lists.inputs.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::size_t begin = static_cast<std::size_t>(row) * length;
    place.sampler.sequence(step, first + row, std::span(lists.inputs).subspan(begin, length),
                           std::span(lists.targets).subspan(begin, length));
  }
  return lists;
}

[[noreturn]] void refuse(const std::string& what, const std::string& remedy) {
  throw Error(ErrorCode::bad_input,
              fmt::format("training on GPUs does not carry out {}: {}", what, remedy));
}

}  // namespace

void require_streamable(const scheduler::Plan& plan) {
  if (plan.strategy.tensor_ways > 1) {
    refuse("a tensor split", "set strategy.tensor_ways to 1");
  }
  if (plan.strategy.resident_state > 0) {
    refuse("state that stays on the GPUs", "set strategy.resident_state to 0");
  }
  if (plan.strategy.resident_weights > 0) {
    refuse("weights that stay on the GPUs", "set strategy.resident_weights to 0");
  }
  if (plan.strategy.kept_activations > 0) {
    refuse("kept activations", "set strategy.kept_activations to 0");
  }
  if (plan.hosts() > 1) {
    refuse("sums over several hosts", "set platform.hosts to 1");
  }
}

StreamTasks::StreamTasks(const Workplace& place, const std::deque<AutogradSubModel>& compute,
                         DeviceLayer& devices, const scheduler::TaskGraph& graph,
                         std::int64_t first_step)
    : place_(place),
      compute_(compute),
      devices_(devices),
      graph_(graph),
      first_step_(first_step),
      bytes_(scheduler::element_bytes(place.plan.workload.precision)),
      loss_arena_("losses", Bytes{graph.steps * place.plan.step_micro_batches() * kLossBytes},
                  devices.pinned(place.plan.machine.sockets.front())),
      losses_(loss_arena_, "losses", loss_arena_.capacity()) {}

void StreamTasks::enqueue(TaskId task, std::span<const StreamId> streams) {
  const Task& work = graph_.tasks[task];
  const bool of_activations = work.payload == Payload::activations;
  const StreamId stream = streams.front();
  switch (work.kind) {
    case TaskKind::fetch:
      return of_activations ? copy_activation(task, stream) : fetch_weights(task, stream);
    case TaskKind::offload:
      return of_activations ? copy_activation(task, stream) : send_gradients(task, stream);
    case TaskKind::all_gather:
      return devices_.all_gather(
          parts(task, streams),
          Bytes{place_.plan.submodels[work.submodel].shard_elements * bytes_.weight});
    case TaskKind::reduce_scatter:
      return reduce_scatter(task, streams);
    case TaskKind::forward:
      return forward(task, stream);
    case TaskKind::backward:
      return backward(task, stream);
    case TaskKind::all_reduce:
    case TaskKind::update:
    case TaskKind::norm:
    case TaskKind::read:
    case TaskKind::write:
    case TaskKind::send:
      break;
  }
  throw Error(ErrorCode::device, fmt::format("{}: GPUs have no such task", graph_.describe(task)));
}

// As they are fetched: f32, or the upper plane.
const std::byte* StreamTasks::stored_weights(const StateShard& shard) const {
  return shard.master != nullptr ? reinterpret_cast<const std::byte*>(shard.master)
                                 : reinterpret_cast<const std::byte*>(shard.master_planes.hi);
}

// Straight from where the weights are stored: a GPU's own shard, or for the borrowed matrix, which
// is cut differently here, parts of several shards of sub-model 0.
void StreamTasks::fetch_weights(TaskId task, StreamId stream) const {
  const Task& work = graph_.tasks[task];
  const SubModel& submodel = place_.plan.submodels[work.submodel];
  const Range wanted = shard_range(submodel, work.gpu);
  std::byte* const flat = slot(task, SlotRole::weights);
  const auto copy_from = [&](std::size_t stored_in, Range part) {
    for (std::int64_t gpu = 0; gpu < place_.plan.gpus(); ++gpu) {
      const StateShard shard = place_.state.shard(stored_in, gpu);
      const Range both{std::max(part.begin, shard.range.begin),
                       std::min(part.end, shard.range.end)};
      if (!both.empty()) {
        const std::int64_t first = both.begin - shard.range.begin;
        devices_.copy(stream, stored_weights(shard) + first * bytes_.weight,
                      flat + both.begin * bytes_.weight, Bytes{both.size() * bytes_.weight});
      }
    }
  };
  copy_from(0, {wanted.begin, std::min(wanted.end, submodel.borrowed)});
  copy_from(work.submodel, {std::max(wanted.begin, submodel.borrowed), wanted.end});
}

void StreamTasks::copy_activation(TaskId task, StreamId stream) const {
  const Task& work = graph_.tasks[task];
  std::byte* const host = slot(task, SlotRole::host);
  std::byte* device = slot(task, SlotRole::input);
  if (device == nullptr) {
    device = slot(task, SlotRole::output);
  }
  const bool fetch = work.kind == TaskKind::fetch;
  devices_.copy(stream, fetch ? host : device, fetch ? device : host, work.bytes);
}

void StreamTasks::reduce_scatter(TaskId task, std::span<const StreamId> streams) const {
  const SubModel& submodel = place_.plan.submodels[graph_.tasks[task].submodel];
  const auto taking_part = parts(task, streams);
  for (std::size_t gpu = 0; gpu < taking_part.size(); ++gpu) {
    narrow(taking_part[gpu].buffer, submodel.shard_elements * place_.plan.replicas(),
           static_cast<int>(gpu), streams[gpu]);
  }
  devices_.reduce_scatter(taking_part, place_.plan.workload.precision, submodel.shard_elements);
}

// In bf16 trainings gradients are rounded before they leave their GPU.
void StreamTasks::narrow(std::byte* gradients, std::int64_t count, int gpu, StreamId stream) const {
  if (bytes_.sent_gradient < bytes_.gradient) {
    devices_.launch(
        stream, [values = reinterpret_cast<float*>(gradients), count,
                 device = devices_.tensor_device(gpu)] { narrow_in_place(values, count, device); });
  }
}

void StreamTasks::send_gradients(TaskId task, StreamId stream) const {
  const Task& work = graph_.tasks[task];
  const SubModel& submodel = place_.plan.submodels[work.submodel];
  const Range range = shard_range(submodel, work.gpu);
  if (range.empty()) {
    return;
  }
  std::byte* const gradients = slot(task, SlotRole::gradients);
  if (place_.plan.replicas() == 1) {
    narrow(gradients, submodel.moved(), work.gpu, stream);  // else the sum was of rounded ones
  }
  devices_.copy(stream, gradients + range.begin * bytes_.sent_gradient, slot(task, SlotRole::host),
                Bytes{range.size() * bytes_.sent_gradient});
}

// The slots of a collective, with the streams of the same GPUs.
std::vector<DeviceWork::Part> StreamTasks::parts(TaskId task,
                                                 std::span<const StreamId> streams) const {
  std::vector<DeviceWork::Part> parts;
  const auto engines = graph_.task_engines(task);
  for (std::size_t i = 0; i < engines.size(); ++i) {
    const auto uses = graph_.uses(task);
    const auto own = std::ranges::find_if(uses, [&](const SlotUse& use) {
      return graph_.slots[use.slot].gpu == graph_.engines[engines[i]].device;
    });
    OFFSTAGE_CHECK(own != uses.end(), fmt::format("{}: a GPU has no slot", graph_.describe(task)));
    parts.push_back({streams[i], place_.slots.bytes(own->slot), nullptr});
  }
  return parts;
}

void StreamTasks::forward(TaskId task, StreamId stream) const {
  const Task& work = graph_.tasks[task];
  const AutogradSubModel& compute = compute_of(work);
  auto tokens = std::make_shared<TokenLists>();
  if (compute.has_embedding()) {
    *tokens = read_tokens(place_, work, first_step_ + work.step);
  }
  devices_.launch(stream,
                  [&compute, tokens, weights = weights(task), input = slot(task, SlotRole::input),
                   output = slot(task, SlotRole::output)] {
                    compute.forward(weights, tokens->view(), input, output);
                  });
}

void StreamTasks::backward(TaskId task, StreamId stream) const {
  const Task& work = graph_.tasks[task];
  const AutogradSubModel& compute = compute_of(work);
  auto tokens = std::make_shared<TokenLists>();
  if (compute.has_embedding() || compute.has_head()) {
    *tokens = read_tokens(place_, work, first_step_ + work.step);
  }
  const std::int64_t borrowed = place_.plan.submodels[work.submodel].borrowed;
  auto* const gradients = reinterpret_cast<float*>(slot(task, SlotRole::gradients));
  const auto uses = graph_.uses(task);
  // The occupant's first task overwrites what the sub-model before it left in the slot.
  const bool first = std::ranges::any_of(
      uses, [](const SlotUse& use) { return use.role == SlotRole::gradients && use.acquires; });
  std::byte* const input = slot(task, SlotRole::input);
  const AutogradSubModel::Pass pass{
      .input = input,
      .output_gradient = slot(task, SlotRole::output_gradient),
      .input_gradient = input,
      .loss_tokens = place_.plan.workload.tokens_per_step(),
      .gradients = {.own = gradients + borrowed,
                    .tied = borrowed > 0 ? gradients : nullptr,
                    .accumulate = !first},
      .loss = compute.has_head() ? losses_.floats() + loss_index(task) : nullptr};
  devices_.launch(stream, [&compute, tokens, pass, weights = weights(task)] {
    compute.backward(weights, tokens->view(), pass);
  });
}

bool StreamTasks::has_loss(TaskId task) const {
  const Task& work = graph_.tasks[task];
  return work.kind == TaskKind::backward && compute_of(work).has_head();
}

double StreamTasks::loss(TaskId task) const {
  return static_cast<double>(losses_.floats()[loss_index(task)]);
}

const AutogradSubModel& StreamTasks::compute_of(const Task& work) const {
  return compute_[work.submodel * static_cast<std::size_t>(place_.plan.gpus()) + work.gpu];
}

std::size_t StreamTasks::loss_index(TaskId task) const {
  const Task& work = graph_.tasks[task];
  return static_cast<std::size_t>(work.step * place_.plan.step_micro_batches() +
                                  place_.plan.first_micro_batch(work.gpu) + work.micro_batch);
}

std::byte* StreamTasks::slot(TaskId task, SlotRole role) const {
  for (const SlotUse& use : graph_.uses(task)) {
    if (use.role == role) {
      return place_.slots.bytes(use.slot);
    }
  }
  return nullptr;
}

AutogradSubModel::DeviceWeights StreamTasks::weights(TaskId task) const {
  const std::int64_t borrowed = place_.plan.submodels[graph_.tasks[task].submodel].borrowed;
  const std::byte* const flat = slot(task, SlotRole::weights);
  return {.own = flat + borrowed * bytes_.weight, .tied = borrowed > 0 ? flat : nullptr};
}

}  // namespace offstage::exec
