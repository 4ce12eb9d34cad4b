#include "scheduler/working_memory.h"

#include <algorithm>

namespace offstage::scheduler {
namespace {

using platform::Bytes;

struct KeepingPass {
  Bytes forward_peak, backward_peak;
  Bytes kept;  // between the two: what the layers keep, and the outputs between them
};

KeepingPass keeping_pass(const workloads::LayerTable& table, std::size_t first, std::size_t end) {
  // One array carries the gradient from layer to layer: the slot that hands it on, or, when an
  // embedding at the bottom hands nothing on, one of the executor's.
  const Bytes boundary = table.layer(0).memory.output;
  const auto is_embedding = [&table](std::size_t layer) {
    return table.layer(layer).kind == workloads::LayerKind::embedding;
  };
  const Bytes carried = is_embedding(first) && end - first > 1 ? boundary : Bytes{};
  // Held below layer i: what the layers before it keep, and their outputs, which are its inputs.
  Bytes held;
  KeepingPass pass;
  for (std::size_t i = first; i < end; ++i) {
    const auto& memory = table.layer(i).memory;
    // The last output is not computed again when nobody reads it, or lies in a slot.
    const Bytes not_needed = i + 1 == end ? memory.output : Bytes{};
    pass.forward_peak = std::max(pass.forward_peak, held + memory.keep_peak - not_needed);
    const Bytes gradients = memory.output + (is_embedding(i) ? Bytes{} : boundary);
    pass.backward_peak =
        std::max(pass.backward_peak, held + carried + memory.backward_peak - gradients);
    held += memory.kept;
    pass.kept = held;
    held += memory.output;
  }
  return pass;
}

Bytes forward_keeping_nothing(const workloads::LayerTable& table, std::size_t first,
                              std::size_t end) {
  Bytes peak;
  Bytes input;  // the first layer reads a slot
  for (std::size_t i = first; i < end; ++i) {
    const auto& memory = table.layer(i).memory;
    const Bytes in_slot = i + 1 == end ? memory.output : Bytes{};
    peak = std::max(peak, input + memory.forward_peak - in_slot);
    input = memory.output;
  }
  return peak;
}

}  // namespace

ComputeMemory compute_memory(const workloads::LayerTable& table, std::size_t first, std::size_t end,
                             bool keeps_activations) {
  const KeepingPass pass = keeping_pass(table, first, end);
  if (keeps_activations) {
    return {pass.forward_peak - pass.kept, pass.backward_peak - pass.kept, pass.kept};
  }
  return {forward_keeping_nothing(table, first, end),
          std::max(pass.forward_peak, pass.backward_peak),
          {}};
}

platform::Precision compute_precision(const platform::Machine& machine,
                                      const workloads::Workload& workload) {
  return platform::has_virtual_gpus(machine) ? platform::Precision::f32 : workload.precision;
}

Bytes widened_bytes(const workloads::LayerTable& table, std::size_t first, std::size_t end,
                    std::int64_t moved_weights) {
  constexpr std::int64_t kFloat = 4;
  const Bytes boundary = table.layer(0).memory.output;
  const bool has_input = table.layer(first).kind != workloads::LayerKind::embedding;
  const bool has_output = table.layer(end - 1).kind != workloads::LayerKind::head;
  return Bytes{moved_weights * kFloat} + boundary * ((has_input ? 1 : 0) + (has_output ? 1 : 0));
}

}  // namespace offstage::scheduler
