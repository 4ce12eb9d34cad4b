#include "exec/compute_arrays.h"

#include "exec/planes.h"

namespace offstage::exec {

ComputeArrays::ComputeArrays(const scheduler::Plan& plan, const scheduler::SubModel& submodel,
                             const StoredArrays& stored)
    : stored_(stored),
      bf16_(plan.workload.precision == platform::Precision::bf16),
      boundary_(plan.strategy.micro_batch * plan.workload.sequence_length *
                plan.workload.model.hidden) {
  const auto* flat = reinterpret_cast<const float*>(stored.weights);
  if (bf16_) {
    flat = widened(stored.weights, submodel.moved(), wide_weights_);
    input_ = widened(stored.input, boundary_, wide_input_);
    output_ = widened(stored.output, boundary_, wide_output_);
  } else {
    input_ = reinterpret_cast<float*>(stored.input);
    output_ = reinterpret_cast<float*>(stored.output);
  }
  weights_ = {.own = flat + submodel.borrowed, .tied = submodel.borrowed > 0 ? flat : nullptr};
}

float* ComputeArrays::widened(const std::byte* from, std::int64_t count,
                              std::optional<Temporary>& to) const {
  if (from == nullptr) {
    return nullptr;
  }
  to.emplace(platform::Bytes{count * static_cast<std::int64_t>(sizeof(float))});
  widen(reinterpret_cast<const std::uint16_t*>(from), count, to->floats());
  return to->floats();
}

void ComputeArrays::store(const float* computed, std::byte* to) const {
  if (bf16_ && to != nullptr) {
    narrow(computed, boundary_, reinterpret_cast<std::uint16_t*>(to));
  }
}

}  // namespace offstage::exec
