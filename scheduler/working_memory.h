#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/machine.h"
#include "platform/units.h"
#include "workloads/layer_table.h"
#include "workloads/workload.h"

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

// Virtual GPUs compute in f32 whatever the weights are stored and moved in.
platform::Precision compute_precision(const platform::Machine& machine,
                                      const workloads::Workload& workload);

// Of a compute task that finds weights and boundary activations in bf16 and computes in f32: all
// the weights that were moved, its input and its output, in f32 from begin to end of the task. (On
// the way back the gradients of both take the places.) Layers and table as above.
platform::Bytes widened_bytes(const workloads::LayerTable& table, std::size_t first,
                              std::size_t end, std::int64_t moved_weights);

}  // namespace offstage::scheduler
