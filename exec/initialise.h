#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "workloads/layer_table.h"

// Initial weights from a seed. Each value depends on seed, layer, tensor and index alone (a
// counter-based generator), so that it does not matter who fills which shard, or in what order.
namespace offstage::exec {

// Fills out with elements first ... first + out.size() - 1 of the layer's flat weights. Matrices
// are normal with the model's initializer_range, projections into the residual stream smaller by
// sqrt(2 x layers); norms are 1, biases 0.
// Source: GPT-2, Radford et al. 2019, section 2.3; the generator is Philox4x32-10, Salmon et al.
// 2011.
void initialise_layer(const workloads::LayerTable& table, std::size_t layer, std::uint64_t seed,
                      std::int64_t first, std::span<float> out);

// Where a training's first weights come from: fills out with elements first ... first + out.size()
// - 1 of a layer's flat weights. Errors: Error(io), Error(bad_input) of files.
using WeightSource =
    std::function<void(std::size_t layer, std::int64_t first, std::span<float> out)>;

// Those of initialise_layer. Owner: the table outlives the source.
WeightSource seeded_weights(const workloads::LayerTable& table, std::uint64_t seed);

}  // namespace offstage::exec
