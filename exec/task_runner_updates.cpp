#include <algorithm>
#include <span>

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
  const float* gradient = nullptr;
  AdamW adamw;  // of this step, for what decays
  float gradient_scale = 1.0F;
  std::int64_t step = 1;  // from 1
};

// Elements `part` of it, counted from the shard's first.
void update_part(const UpdateSettings& settings, MomentPrecision precision,
                 const ShardUpdate& update, Range part, bool decays) {
  AdamW adamw = update.adamw;
  if (!decays) {
    adamw.weight_decay = 0.0F;
  }
  const std::int64_t count = update.state.range.size();
  const auto apply = [&](auto shard, auto* moments) {
    shard.master = update.state.master + part.begin;
    shard.m = moments + part.begin;
    shard.v = moments + count + part.begin;
    shard.gradient = update.gradient + part.begin;
    shard.count = part.size();
    shard.gradient_scale = update.gradient_scale;
    adamw_update(adamw, update.step, shard);
  };
  if (precision == MomentPrecision::f32) {
    apply(ShardF32{}, reinterpret_cast<float*>(update.moments));
    return;
  }
  ShardF32Moments16 shard;
  shard.first_parameter = update.state.first_parameter + part.begin;
  shard.seed = settings.seed;
  apply(shard, reinterpret_cast<std::uint16_t*>(update.moments));
}

}  // namespace

// The gradients that a GPU's update changes its shard by: in the first slot of the task, which on
// the CPU holds the shard, on a GPU the whole sub-model.
float* TaskRunner::own_gradients(TaskId task) const {
  const Task& work = graph_.tasks[task];
  const SubModel& submodel = place_.plan.submodels[work.submodel];
  const SlotUse& use = graph_.uses(task).front();
  const std::int64_t slot_begin =
      use.role == SlotRole::gradients ? 0 : shard_range(submodel, work.gpu).begin;
  return place_.slots.floats(use.slot) + (owned_range(submodel, work.gpu).begin - slot_begin);
}

void TaskRunner::add_norm(TaskId task) {
  const Task& work = graph_.tasks[task];
  // The tied head's part belongs to the embedding's gradient; the update then finds it added.
  add_borrowed_gradients(task);
  const Range range = owned_range(place_.plan.submodels[work.submodel], work.gpu);
  const auto gpus = static_cast<std::size_t>(place_.plan.gpus());
  const std::size_t index =
      (work.step * place_.plan.submodels.size() + work.submodel) * gpus + work.gpu;
  squares_[index] =
      range.empty() ? 0.0
                    : sum_of_squares({own_gradients(task), static_cast<std::size_t>(range.size())},
                                     workers(task));
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
  ShardUpdate update;
  update.state = place_.state.shard(work.submodel, work.gpu);
  if (update.state.range.empty()) {
    return;
  }
  if (!place_.settings.clip_norm) {
    add_borrowed_gradients(task);
  }
  update.gradient = own_gradients(task);
  update.gradient_scale = gradient_scale(task);
  update.step = first_step_ + work.step + 1;
  update.adamw = place_.settings.adamw;
  if (place_.settings.learning_rate) {
    update.adamw.learning_rate = static_cast<float>(place_.settings.learning_rate(update.step));
  }
  // Moments from NVMe are in the last slot.
  update.moments = update.state.moments != nullptr
                       ? update.state.moments
                       : place_.slots.bytes(graph_.uses(task).back().slot);
  const std::int64_t first = update.state.range.begin;
  workers(task).for_parts(
      update.state.range.size(), kElementsOfPart, [&](std::int64_t begin, std::int64_t end) {
        decay_runs_.in(work.submodel, {first + begin, first + end}, [&](const DecayRun& run) {
          update_part(place_.settings, place_.plan.strategy.moments, update,
                      {run.range.begin - first, run.range.end - first}, run.decays);
        });
      });
}

// Slots after the first that hold a GPU's shard of the tied head's gradients. Of these, the
// borrowed matrix has the same element numbers there as in sub-model 0.
void TaskRunner::add_borrowed_gradients(TaskId task) const {
  const Task& work = graph_.tasks[task];
  const Range mine = shard_range(place_.plan.submodels[work.submodel], work.gpu);
  const SubModel& borrower = place_.plan.submodels.back();
  const auto uses = graph_.uses(task);
  float* const gradients = place_.slots.floats(uses.front().slot);
  for (const SlotUse& use : uses.subspan(1)) {
    if (graph_.slots[use.slot].kind != SlotKind::host_gradients) {
      continue;
    }
    const Range shard = shard_range(borrower, graph_.slots[use.slot].gpu);
    const Range both{std::max(mine.begin, shard.begin),
                     std::min({mine.end, shard.end, borrower.borrowed})};
    if (both.empty()) {
      continue;
    }
    const float* const from = place_.slots.floats(use.slot) + (both.begin - shard.begin);
    for (std::int64_t i = 0; i < both.size(); ++i) {
      gradients[both.begin - mine.begin + i] += from[i];
    }
  }
}

void TaskRunner::move_moments(TaskId task) const {
  const Task& work = graph_.tasks[task];
  std::byte* const slot = place_.slots.bytes(use(task, SlotRole::host)->slot);
  if (work.kind == TaskKind::read) {
    place_.nvme->read(work.submodel, work.gpu, slot);
  } else {
    place_.nvme->write(work.submodel, work.gpu, slot);
  }
}

}  // namespace offstage::exec
