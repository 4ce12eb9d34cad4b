#include "scheduler/working_memory.h"

#include <algorithm>

namespace offstage::scheduler {

using platform::Bytes;

Bytes submodel_forward_bytes(const workloads::LayerTable& table, std::size_t first,
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

Bytes submodel_backward_bytes(const workloads::LayerTable& table, std::size_t first,
                              std::size_t end) {
  // One array carries the gradient from layer to layer: the slot that hands it on, or, when an
  // embedding at the bottom hands nothing on, one of the executor's.
  const Bytes boundary = table.layer(0).memory.output;
  const bool embedding = table.layer(first).kind == workloads::LayerKind::embedding;
  const Bytes carried = embedding && end - first > 1 ? boundary : Bytes{};
  // Held below layer i: what the layers before it keep, and their outputs, which are its inputs.
  Bytes held;
  Bytes peak;
  for (std::size_t i = first; i < end; ++i) {
    const auto& memory = table.layer(i).memory;
    // The last output is not computed again: nobody reads it.
    const Bytes not_needed = i + 1 == end ? memory.output : Bytes{};
    peak = std::max(peak, held + memory.keep_peak - not_needed);
    const bool first_of_model = table.layer(i).kind == workloads::LayerKind::embedding;
    const Bytes gradients = memory.output + (first_of_model ? Bytes{} : boundary);
    peak = std::max(peak, held + carried + memory.backward_peak - gradients);
    held += memory.kept + memory.output;
  }
  return peak;
}

}  // namespace offstage::scheduler
