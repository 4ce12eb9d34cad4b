#include "exec/initialise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>

namespace offstage::exec {
namespace {

using Counter = std::array<std::uint32_t, 4>;

// Philox4x32-10: four random words from a counter and a key.
// Source: Salmon, Moraes, Dror, Shaw, Parallel random numbers: as easy as 1, 2, 3, SC 2011.
Counter philox(Counter counter, std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// Two independent standard normal values from two random words (Box and Muller).
std::array<double, 2> normal_pair(std::uint32_t a, std::uint32_t b) {
  const double u = (a + 1.0) * 0x1p-32;  // in (0, 1], so that its logarithm is finite
  const double radius = std::sqrt(-2.0 * std::log(u));
  const double angle = 2.0 * std::numbers::pi * (b * 0x1p-32);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

struct TensorStream {
  std::uint64_t seed = 0;
  std::uint32_t layer = 0;
  std::uint32_t tensor = 0;

  // Fills out with normal values `first` ... of the tensor.
  void normal(double deviation, std::int64_t first, std::span<float> out) const {
    std::array<double, 4> four{};
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t index = static_cast<std::uint64_t>(first) + i;
      if (i == 0 || index % 4 == 0) {
        const std::uint64_t block = index / 4;
        const Counter words =
            philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                    layer, tensor},
                   {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
        const auto low = normal_pair(words[0], words[1]);
        const auto high = normal_pair(words[2], words[3]);
        four = {low[0], low[1], high[0], high[1]};
      }
      out[i] = static_cast<float>(deviation * four[index % 4]);
    }
  }
};

// The projections whose outputs are added to the residual stream, twice a block.
bool writes_residual(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {
      "attn.c_proj.weight", "mlp.c_proj.weight", "self_attn.o_proj.weight", "mlp.down_proj.weight"};
  return std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace

void initialise_layer(const workloads::LayerTable& table, std::size_t layer, std::uint64_t seed,
                      std::int64_t first, std::span<float> out) {
  const workloads::Model& model = table.model;
  const std::int64_t last = first + static_cast<std::int64_t>(out.size());
  std::int64_t begin = 0;
  std::uint32_t index = 0;
  for (const workloads::ParameterTensor& tensor : table.layer(layer).parameters) {
    const std::int64_t end = begin + tensor.elements();
    const std::int64_t from = std::max(begin, first);
    const std::int64_t to = std::min(end, last);
    if (from < to) {
      const std::span<float> part =
          out.subspan(static_cast<std::size_t>(from - first), static_cast<std::size_t>(to - from));
      if (tensor.shape.size() < 2) {
        std::ranges::fill(part, tensor.name.ends_with(".bias") ? 0.0F : 1.0F);
      } else {
        const double scale = writes_residual(tensor.name)
                                 ? 1.0 / std::sqrt(2.0 * static_cast<double>(model.layers))
                                 : 1.0;
        TensorStream{seed, static_cast<std::uint32_t>(layer), index}.normal(
            model.initializer_range * scale, from - begin, part);
      }
    }
    begin = end;
    ++index;
  }
}

WeightSource seeded_weights(const workloads::LayerTable& table, std::uint64_t seed) {
  return [&table, seed](std::size_t layer, std::int64_t first, std::span<float> out) {
    initialise_layer(table, layer, seed, first, out);
  };
}

}  // namespace offstage::exec
