#include "exec/initialise.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/exec/small_models.h"

using namespace offstage::exec;
using namespace offstage::exec::testing;

namespace {

std::vector<float> whole_layer(const offstage::workloads::LayerTable& table, std::size_t layer,
                               std::uint64_t seed) {
  std::vector<float> flat(static_cast<std::size_t>(table.layer(layer).parameter_count));
  initialise_layer(table, layer, seed, 0, flat);
  return flat;
}

double deviation(const float* data, std::int64_t count) {
  double sum = 0.0;
  double squares = 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += data[i];
    squares += static_cast<double>(data[i]) * data[i];
  }
  const auto n = static_cast<double>(count);
  return std::sqrt(squares / n - sum / n * (sum / n));
}

}  // namespace

TEST_CASE("initial weights do not depend on how a layer is sharded", "[exec]") {
  const auto table = table_of(gpt2_model(), 1, 8);
  const std::vector<float> whole = whole_layer(table, 1, 42);
  std::vector<float> pieces(whole.size());
  // Odd bounds, so that shards begin inside tensors and inside groups of four.
  for (std::size_t begin = 0; begin < pieces.size();) {
    const std::size_t size = std::min<std::size_t>(1237, pieces.size() - begin);
    initialise_layer(table, 1, 42, static_cast<std::int64_t>(begin),
                     std::span(pieces).subspan(begin, size));
    begin += size;
  }
  CHECK(pieces == whole);
}

TEST_CASE("initial weights differ by seed and by layer, and only then", "[exec]") {
  const auto table = table_of(gpt2_model(), 1, 8);
  CHECK(whole_layer(table, 1, 42) == whole_layer(table, 1, 42));
  CHECK(whole_layer(table, 1, 42) != whole_layer(table, 1, 43));
  CHECK(whole_layer(table, 1, 42) != whole_layer(table, 2, 42));
}

TEST_CASE("matrices have the model's deviation, residual projections a smaller one", "[exec]") {
  offstage::workloads::Model model = llama_model(false);
  model.initializer_range = 0.04;
  const auto table = table_of(model, 1, 8);
  const std::vector<float> flat = whole_layer(table, 1, 7);
  std::int64_t offset = 0;
  for (const auto& tensor : table.layer(1).parameters) {
    CAPTURE(tensor.name);
    const float* const data = flat.data() + offset;
    offset += tensor.elements();
    if (tensor.shape.size() < 2) {
      CHECK(data[0] == 1.0F);  // this model has no biases
      continue;
    }
    // The deviation of n values has a relative error of 1 / sqrt(2 n): for 64 x 16, the smallest
    // matrix here, 2.2 %. Five of these are allowed.
    const bool residual =
        tensor.name == "self_attn.o_proj.weight" || tensor.name == "mlp.down_proj.weight";
    const double expected = residual ? 0.04 / std::sqrt(2.0 * 3.0) : 0.04;
    CHECK(deviation(data, tensor.elements()) == Approx(expected).epsilon(0.11));
  }
}

TEST_CASE("the generator is Philox with ten rounds", "[exec]") {
  // Random123's known answers, kat_vectors: philox4x32 10 rounds, counter and key 0, gives
  // 6627e8d5 e169c58d bc57ac4c 9b00dbd8. Box and Muller make of the first two words
  // sqrt(-2 ln((0x6627e8d5 + 1) / 2^32)) cos(2 pi 0xe169c58d / 2^32).
  // Counter and key are 0 for seed 0, layer 0, tensor 0, values 0 ... 3.
  const auto table = table_of(gpt2_model(), 1, 8);
  std::vector<float> first(4);
  initialise_layer(table, 0, 0, 0, first);
  const double scale = 4294967296.0;
  const double radius = std::sqrt(-2.0 * std::log((0x6627e8d5 + 1.0) / scale));
  const double angle = 2.0 * 3.14159265358979323846 * (0xe169c58d / scale);
  CHECK(first[0] == Approx(0.02 * radius * std::cos(angle)));
  CHECK(first[1] == Approx(0.02 * radius * std::sin(angle)));
}
