#include <algorithm>
#include <span>

#include "exec/bf16.h"
#include "exec/gradient_norm.h"
#include "exec/task_runner.h"

// What becomes of gradients once they are summed: norms, updates, moments on NVMe.
namespace offstage::exec {

using scheduler::MomentPrecision;
using scheduler::Range;
using scheduler::SlotKind;
using scheduler::SlotRole;
using scheduler::SlotUse;
using scheduler::StatePlace;
using scheduler::SubModel;
using scheduler::Task;
using scheduler::TaskId;
using scheduler::TaskKind;

namespace {

// Some 100 us of work, against 1 us to hand a part to a thread.
constexpr std::int64_t kElementsOfPart = 65536;

// One update of a GPU's shard of a sub-model.
struct ShardUpdate {
  StateShard state;
  std::byte* moments = nullptr;
  const std::byte* gradient = nullptr;  // f32, or bf16 where the master is in planes
  AdamW adamw;                          // of this step, for what decays
  float gradient_scale = 1.0F;
  std::int64_t step = 1;  // from 1
  std::uint64_t seed = 0;
};

template <typename Master, typename Moment, typename Gradient>
void apply(const AdamW& adamw, const ShardUpdate& update, Master master, Range part) {
  auto* const m = reinterpret_cast<Moment*>(update.moments) + part.begin;
  const AdamWShard<Master, Moment, Gradient> shard{
      .master = master,
      .m = m,
      .v = m + update.state.range.size(),
      .gradient = reinterpret_cast<const Gradient*>(update.gradient) + part.begin,
      .count = part.size(),
      .gradient_scale = update.gradient_scale,
      .first_parameter = update.state.first_parameter + part.begin,
      .seed = update.seed};
  adamw_update(adamw, update.step, shard);
}

// Elements `part` of it, counted from the shard's first.
void update_part(MomentPrecision moments, const ShardUpdate& update, Range part, bool decays) {
  AdamW adamw = update.adamw;
  if (!decays) {
    adamw.weight_decay = 0.0F;
  }
  const bool f32_moments = moments == MomentPrecision::f32;
  if (update.state.master != nullptr) {
    float* const master = update.state.master + part.begin;
    return f32_moments ? apply<float*, float, float>(adamw, update, master, part)
                       : apply<float*, std::uint16_t, float>(adamw, update, master, part);
  }
  const Planes master = behind(update.state.master_planes, part.begin);
  return f32_moments ? apply<Planes, float, std::uint16_t>(adamw, update, master, part)
                     : apply<Planes, std::uint16_t, std::uint16_t>(adamw, update, master, part);
}

void add_f32(const float* from, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] += from[i];
  }
}

// The sum is rounded again: it has the place of one gradient.
void add_bf16(const std::uint16_t* from, std::int64_t count, std::uint16_t* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = to_bf16(from_bf16(to[i]) + from_bf16(from[i]));
  }
}

}  // namespace

// The gradients that a GPU's update changes its shard by: in the first slot of the task, which on
// the CPU holds the shard, on a GPU the whole sub-model.
std::byte* TaskRunner::own_gradients(TaskId task) const {
  const Task& work = graph_.tasks[task];
  const SubModel& submodel = place_.plan.submodels[work.submodel];
  const SlotUse& use = graph_.uses(task).front();
  const bool on_gpu = use.role == SlotRole::gradients;
  const auto bytes = scheduler::element_bytes(place_.plan.workload.precision);
  const std::int64_t slot_begin = on_gpu ? 0 : shard_of_gpu(place_.plan, submodel, work.gpu).begin;
  return place_.slots.bytes(use.slot) +
         (owned_by_gpu(place_.plan, submodel, work.gpu).begin - slot_begin) *
             (on_gpu ? bytes.gradient : bytes.sent_gradient);
}

void TaskRunner::add_norm(TaskId task) {
  const Task& work = graph_.tasks[task];
  // The tied head's part belongs to the embedding's gradient; the update then finds it added.
  add_borrowed_gradients(task);
  const Range range = owned_by_gpu(place_.plan, place_.plan.submodels[work.submodel], work.gpu);
  const auto gpus = static_cast<std::size_t>(place_.plan.gpus());
  const std::size_t index =
      (work.step * place_.plan.submodels.size() + work.submodel) * gpus + work.gpu;
  const std::byte* const gradients = own_gradients(task);
  // What several ranks of a tensor split hold counts once.
  for (const Range& own : place_.state.numbers().own_ranges(work.submodel, work.gpu, range)) {
    const std::int64_t begin = own.begin - range.begin;
    const auto count = static_cast<std::size_t>(own.size());
    squares_[index] +=
        bf16_ ? sum_of_squares({reinterpret_cast<const std::uint16_t*>(gradients) + begin, count},
                               workers(task))
              : sum_of_squares({reinterpret_cast<const float*>(gradients) + begin, count},
                               workers(task));
  }
}

// Of the step's gradients: min(1, clip_norm / norm), or 1 without clipping.
float TaskRunner::gradient_scale(TaskId task) const {
  if (!place_.settings.clip_norm) {
    return 1.0F;
  }
  const std::size_t of_step = squares_.size() / graph_.steps;
  return clip_scale(std::span(squares_).subspan(graph_.tasks[task].step * of_step, of_step),
                    *place_.settings.clip_norm);
}

// A virtual GPU is one core; a socket uses what the machine gives its optimizer.
Workers& TaskRunner::workers(TaskId task) {
  const Task& work = graph_.tasks[task];
  const bool on_gpu = place_.plan.submodels[work.submodel].state == StatePlace::resident;
  return on_gpu ? caller_alone_ : workers_[work.socket];
}

void TaskRunner::update(TaskId task) {
  const Task& work = graph_.tasks[task];
  const std::int64_t steps_done = first_step_ + work.step;
  if (place_.checkpoints != nullptr) {
    place_.checkpoints->before_update(work.submodel, work.gpu, steps_done);
  }
  ShardUpdate update;
  update.state = place_.state.shard(work.submodel, work.gpu);
  if (update.state.range.empty()) {
    return;
  }
  if (!place_.settings.clip_norm) {
    add_borrowed_gradients(task);
  }
  std::byte* const gradient = own_gradients(task);
  if (place_.plan.submodels[work.submodel].state == StatePlace::resident) {
    // Others were looked at, and rounded in bf16 trainings, on their way to the CPU: residency
    // changes no bit.
    const auto count = update.state.range.size();
    const auto* const summed = reinterpret_cast<const float*>(gradient);
    require_finite(task, {summed, static_cast<std::size_t>(count)});
    if (bf16_) {
      narrow(summed, count, reinterpret_cast<std::uint16_t*>(gradient));
    }
  }
  update.gradient = gradient;
  update.gradient_scale = gradient_scale(task);
  update.step = steps_done + 1;
  update.adamw = place_.settings.adamw;
  if (place_.settings.learning_rate) {
    update.adamw.learning_rate = static_cast<float>(place_.settings.learning_rate(update.step));
  }
  if (update.state.moments == nullptr) {
    // From NVMe they are in the last slot.
    update.state = with_drive_state(place_.plan, update.state,
                                    place_.slots.bytes(graph_.uses(task).back().slot));
  }
  update.moments = update.state.moments;
  update.seed = place_.settings.seed;
  const std::int64_t first = update.state.range.begin;
  workers(task).for_parts(
      update.state.range.size(), kElementsOfPart, [&](std::int64_t begin, std::int64_t end) {
        decay_runs_.in(work.submodel, {first + begin, first + end}, [&](const DecayRun& run) {
          update_part(place_.plan.strategy.moments, update,
                      {run.range.begin - first, run.range.end - first}, run.decays);
        });
      });
  if (place_.checkpoints != nullptr) {
    place_.checkpoints->after_update(work.submodel, work.gpu, steps_done + 1);
  }
}

// Slots after the first that hold a GPU's shard of the tied head's gradients. Of these, the
// borrowed matrix has the same element numbers there as in sub-model 0.
void TaskRunner::add_borrowed_gradients(TaskId task) const {
  const Task& work = graph_.tasks[task];
  const Range mine = shard_of_gpu(place_.plan, place_.plan.submodels[work.submodel], work.gpu);
  const SubModel& borrower = place_.plan.submodels.back();
  const auto uses = graph_.uses(task);
  std::byte* const gradients = place_.slots.bytes(uses.front().slot);
  for (const SlotUse& use : uses.subspan(1)) {
    if (graph_.slots[use.slot].kind != SlotKind::host_gradients) {
      continue;
    }
    const Range shard = shard_of_gpu(place_.plan, borrower, graph_.slots[use.slot].gpu);
    const Range both{std::max(mine.begin, shard.begin),
                     std::min({mine.end, shard.end, borrower.borrowed})};
    if (both.empty()) {
      continue;
    }
    const std::byte* const from = place_.slots.bytes(use.slot);
    if (bf16_) {
      add_bf16(reinterpret_cast<const std::uint16_t*>(from) + (both.begin - shard.begin),
               both.size(),
               reinterpret_cast<std::uint16_t*>(gradients) + (both.begin - mine.begin));
    } else {
      add_f32(reinterpret_cast<const float*>(from) + (both.begin - shard.begin), both.size(),
              reinterpret_cast<float*>(gradients) + (both.begin - mine.begin));
    }
  }
}

void TaskRunner::move_moments(TaskId task) const {
  const Task& work = graph_.tasks[task];
  std::byte* const slot = place_.slots.bytes(use({task, work.gpu}, SlotRole::host)->slot);
  if (work.kind == TaskKind::read) {
    place_.nvme->read(work.submodel, work.gpu, slot);
  } else {
    place_.nvme->write(work.submodel, work.gpu, slot);
    if (place_.checkpoints != nullptr) {
      place_.checkpoints->state_passes(work.submodel, work.gpu, first_step_ + work.step + 1, slot);
    }
  }
}

}  // namespace offstage::exec
