#pragma once

#include <cstddef>

#include "platform/units.h"
#include "workloads/layer_table.h"

// What a compute task takes on its GPU beside weights, gradients and boundary activations, which
// lie in slots: the largest sum of live temporaries while the executor runs a sub-model's layers.
namespace offstage::scheduler {

// Forward of layers [first, end), keeping nothing: each layer's input is the output of the one
// before.
platform::Bytes submodel_forward_bytes(const workloads::LayerTable& table, std::size_t first,
                                       std::size_t end);

// Backward of layers [first, end): their forward again, now keeping what backward needs, then their
// backward in reverse. Includes the recomputed outputs between the layers.
platform::Bytes submodel_backward_bytes(const workloads::LayerTable& table, std::size_t first,
                                        std::size_t end);

}  // namespace offstage::scheduler
