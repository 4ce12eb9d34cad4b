#pragma once

#include <cstddef>

#include "platform/units.h"
#include "workloads/layer_table.h"

// What a compute task takes on its GPU beside weights, gradients and boundary activations, which
// lie in slots: the largest sum of live temporaries while the executor runs a sub-model's layers.
namespace offstage::scheduler {

struct ComputeMemory {
  platform::Bytes forward;   // peak of temporaries of a forward task, beyond what it keeps
  platform::Bytes backward;  // of a backward task, beyond what was kept for it
  platform::Bytes kept;      // of one micro-batch, from its forward to its backward; 0 when
                             // backward recomputes
};

// Layers [first, end). Recomputing, forward keeps nothing (each layer's input is the output of the
// one before), and backward runs forward again, now keeping, and then back.
ComputeMemory compute_memory(const workloads::LayerTable& table, std::size_t first, std::size_t end,
                             bool keeps_activations);

}  // namespace offstage::scheduler
