#include <utility>

#include "exec/task_runner.h"

// Forward and backward tasks, on one GPU or on all of a tensor split's group at once.
namespace offstage::exec {

using scheduler::SlotRole;
using scheduler::SlotUse;
using scheduler::SubModel;
using scheduler::Task;
using scheduler::TaskId;
using scheduler::TaskKind;

void TaskRunner::compute(TaskId task) {
  const Task& work = graph_.tasks[task];
  place_.compute->on_group(place_.plan.shard_of(work.gpu), [&](std::int64_t gpu) {
    const Part part{task, gpu};
    work.kind == TaskKind::forward ? forward(part) : backward(part);
  });
}

void TaskRunner::load_tokens(const Part& part) const {
  const Task& work = graph_.tasks[part.task];
  const std::int64_t rows = place_.plan.strategy.micro_batch;
  const auto length = static_cast<std::size_t>(place_.plan.workload.sequence_length);
  const std::int64_t before = rank_of(place_) * place_.plan.step_micro_batches();  // other hosts'
  const std::int64_t first =
      (before + place_.plan.first_micro_batch(static_cast<std::size_t>(part.gpu)) +
       work.micro_batch) *
      rows;
  const auto inputs = place_.token_ids.inputs(part.gpu, work.micro_batch);
  const auto targets = place_.token_ids.targets(part.gpu, work.micro_batch);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::size_t begin = static_cast<std::size_t>(row) * length;
    place_.sampler.sequence(first_step_ + work.step, first + row, inputs.subspan(begin, length),
                            targets.subspan(begin, length));
  }
}

Tokens TaskRunner::tokens(const Part& part) const {
  const Task& work = graph_.tasks[part.task];
  return {.inputs = place_.token_ids.inputs(part.gpu, work.micro_batch).data(),
          .targets = place_.token_ids.targets(part.gpu, work.micro_batch).data()};
}

StoredArrays TaskRunner::stored_arrays(const Part& part, SlotRole output_role) const {
  const std::byte* weights = bytes(part, SlotRole::weights);
  if (weights == nullptr) {
    // Without a slot this GPU's shard is everything.
    weights = place_.state.resident_weights(graph_.tasks[part.task].submodel, part.gpu);
  }
  return {.weights = weights,
          .input = bytes(part, SlotRole::input),
          .output = bytes(part, output_role)};
}

void TaskRunner::forward(const Part& part) {
  const Task& work = graph_.tasks[part.task];
  const ArenaScope scope(
      place_.arenas.at(place_.plan.machine.gpus[static_cast<std::size_t>(part.gpu)].pool),
      {graph_.describe(part.task), "working space"});
  const SubModelCompute& compute = place_.compute->of(part.gpu, work.submodel);
  if (compute.has_embedding()) {
    // Nothing reads the previous step's tokens any more: this task's weights are its outcome.
    load_tokens(part);
  }
  const ComputeArrays arrays(place_.plan, place_.plan.submodels[work.submodel],
                             stored_arrays(part, SlotRole::output));
  if (const SlotUse* const keeping = use(part, SlotRole::kept)) {
    kept_[keeping->slot] = compute.forward_keep(arrays.weights(), arrays.input(), arrays.output());
  } else {
    compute.forward(arrays.weights(), tokens(part), arrays.input(), arrays.output());
  }
  arrays.store_output();
}

void TaskRunner::backward(const Part& part) {
  const Task& work = graph_.tasks[part.task];
  const SubModel& submodel = place_.plan.submodels[work.submodel];
  const SubModelCompute& compute = place_.compute->of(part.gpu, work.submodel);
  const ArenaScope scope(
      place_.arenas.at(place_.plan.machine.gpus[static_cast<std::size_t>(part.gpu)].pool),
      {graph_.describe(part.task), "working space"});
  const ComputeArrays arrays(place_.plan, submodel, stored_arrays(part, SlotRole::output_gradient));
  auto* const gradients = reinterpret_cast<float*>(bytes(part, SlotRole::gradients));
  // The occupant's first task overwrites what the sub-model before it left in the slot.
  const bool first = use(part, SlotRole::gradients)->acquires;
  const SlotUse* const keeping = use(part, SlotRole::kept);
  const double loss =
      compute.backward(arrays.weights(), tokens(part),
                       {.input = arrays.input(),
                        .output_gradient = arrays.output(),
                        .input_gradient = arrays.input(),
                        .loss_tokens = place_.plan.workload.tokens_per_step(),
                        .gradients = {.own = gradients + submodel.borrowed,
                                      .tied = submodel.borrowed > 0 ? gradients : nullptr,
                                      .accumulate = !first}},
                       keeping != nullptr ? std::move(kept_[keeping->slot]) : nullptr);
  arrays.store_input();
  // All ranks of a group have the same loss, of the micro-batch: it counts once.
  if (compute.has_head() && part.gpu == work.gpu) {
    set_loss(part.task, loss);
  }
}

}  // namespace offstage::exec
