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
    peak = std::max(peak, input + memory.forward_peak);
    input = memory.output;
  }
  return peak;
}

Bytes submodel_backward_bytes(const workloads::LayerTable& table, std::size_t first,
                              std::size_t end) {
  // Held below layer i: what the layers before it keep, and their outputs, which are its inputs.
  Bytes held;
  Bytes peak;
  for (std::size_t i = first; i < end; ++i) {
    const auto& memory = table.layer(i).memory;
    peak = std::max(peak, held + memory.keep_peak);
    // The last output is dropped: nobody reads it again. Its gradient comes in a slot, so that only
    // the gradients between the layers count.
    const Bytes gradient_in_slot = i + 1 == end ? memory.output : Bytes{};
    peak = std::max(peak, held + memory.backward_peak - gradient_in_slot);
    held += memory.kept + memory.output;
  }
  return peak;
}

}  // namespace offstage::scheduler
