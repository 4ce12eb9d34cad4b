#include "scheduler/core_costs.h"

#include <algorithm>

#include "platform/collective.h"

namespace offstage::scheduler {

using platform::Bytes;
using platform::CollectiveKind;
using platform::Seconds;

namespace {

Seconds times(std::int64_t elements, const platform::Sourced<Seconds>& each) {
  return each.value * static_cast<double>(elements);
}

}  // namespace

CoreCosts::CoreCosts(const Plan& plan, const Profile& profile)
    : plan_(plan),
      passes_(profile.core_passes ? *profile.core_passes : guess_core_passes(plan.machine)),
      copy_rate_(plan.machine.core_copy_rate->value) {}

Seconds CoreCosts::copy(const Task& task) const {
  if (task.kind == TaskKind::offload && task.payload == Payload::gradients) {
    const auto elements = task.bytes.value / element_bytes(plan_.workload.precision).sent_gradient;
    return times(elements, bf16() ? passes_.send_gradient_bf16 : passes_.send_gradient);
  }
  return task.bytes / copy_rate_;
}

// One core does what all GPUs take part in. The curves are of all GPUs without a tensor split and
// of shards that are in the slots already: the time of a task is to the curve's as what it reads
// and writes is to what was read and written there.
Seconds CoreCosts::collective(const Task& task) const {
  const auto all = static_cast<double>(plan_.gpus());
  const auto groups = static_cast<double>(plan_.replicas());
  const auto ways = static_cast<double>(plan_.strategy.tensor_ways);
  if (task.kind == TaskKind::all_gather) {
    const StatePlace state = plan_.submodels[task.submodel].state;
    const bool resident = state == StatePlace::resident || state == StatePlace::resident_weights;
    const double copies = ways * (resident ? groups : groups - 1.0);
    return platform::collective_time(plan_.machine, CollectiveKind::all_gather, task.bytes) *
           (copies / (all - 1.0));
  }
  // Every shard is read from each GPU and written to one, in the precision it was summed in.
  const ElementBytes bytes = element_bytes(plan_.workload.precision);
  const Bytes summed{task.bytes.value / bytes.sent_gradient * bytes.gradient};
  return platform::collective_time(plan_.machine, CollectiveKind::reduce_scatter, summed) *
         (ways * (groups + 1.0) / (all + 1.0));
}

Seconds CoreCosts::update_of_one() const {
  const bool bf16_moments = plan_.strategy.moments == MomentPrecision::bf16;
  if (bf16()) {
    return (bf16_moments ? passes_.update_planes_bf16_moments : passes_.update_planes).value;
  }
  return bf16_moments ? passes_.update_bf16_moments.value
                      : plan_.machine.sockets.front().optimizer_core_time_per_parameter.value;
}

// The embedding's update, or its norm where there is one, adds the tied head's gradients first: two
// reads and a write, a copy and a half.
Seconds CoreCosts::borrowed_gradients(const Task& task) const {
  constexpr double kCopies = 1.5;
  if (task.submodel != 0) return {};
  const double share =
      static_cast<double>(plan_.submodels.back().borrowed) / static_cast<double>(plan_.replicas());
  const auto bytes = static_cast<double>(element_bytes(plan_.workload.precision).sent_gradient);
  return {kCopies * share * bytes / copy_rate_.value};
}

Seconds CoreCosts::update(const Task& task) const {
  Seconds sum = update_of_one() * static_cast<double>(task.elements);
  if (plan_.strategy.clipping == Clipping::none) sum += borrowed_gradients(task);
  if (plan_.submodels[task.submodel].state == StatePlace::resident) {
    // Gradients that never leave the GPU are looked through, and rounded, here.
    sum += times(task.elements, bf16() ? passes_.send_gradient_bf16 : passes_.norm);
  }
  return sum;
}

Seconds CoreCosts::norm(const Task& task) const {
  return times(task.elements, bf16() ? passes_.norm_bf16 : passes_.norm) + borrowed_gradients(task);
}

// As exec/compute_arrays.cpp: weights and both boundary activations are widened, the one that was
// computed is rounded.
Seconds CoreCosts::widening(std::size_t submodel, bool forward) const {
  if (!bf16()) return {};
  const bool first = submodel == 0, last = submodel + 1 == plan_.submodels.size();
  const std::int64_t boundary =
      plan_.boundary_bytes().value / element_bytes(plan_.workload.precision).activation;
  const std::int64_t boundaries = (first ? 0 : 1) + (last ? 0 : 1);
  const bool stores = forward ? !last : !first;
  return times(plan_.submodels[submodel].moved() + boundaries * boundary, passes_.widen) +
         times(stores ? boundary : 0, passes_.narrow);
}

// The curve is the wall time of all GPUs' ranks, on as many cores as there are; each rank reads
// and writes its part of everybody's array and meets the others twice, whatever their number.
Seconds CoreCosts::reduction(Bytes bytes) const {
  const auto ranks = static_cast<double>(plan_.gpus());
  const auto at_once = std::min(ranks, static_cast<double>(plan_.machine.sockets.front().cores));
  return platform::collective_time(plan_.machine, CollectiveKind::all_reduce, bytes) *
         (at_once / ranks);
}

}  // namespace offstage::scheduler
