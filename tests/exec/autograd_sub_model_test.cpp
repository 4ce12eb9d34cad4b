#include "exec/autograd_sub_model.h"

#include <cmath>
#include <cstring>
#include <vector>

#include <catch2/catch.hpp>

#include "exec/bf16.h"
#include "platform/error.h"
#include "tests/exec/small_models.h"

using namespace offstage::exec;
using namespace offstage::exec::testing;
using offstage::platform::Precision;

namespace {

// Numbers of a run's precision, as bytes.
std::vector<std::byte> as_bytes(const std::vector<float>& values, Precision precision) {
  if (precision == Precision::f32) {
    std::vector<std::byte> bytes(4 * values.size());
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  std::vector<std::byte> bytes(2 * values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t half = to_bf16(values[i]);
    std::memcpy(bytes.data() + 2 * i, &half, sizeof half);
  }
  return bytes;
}

struct Part {
  std::size_t first, last;
  std::vector<std::byte> weights;
  std::vector<float> gradients;
};

std::vector<Part> make_parts(const offstage::workloads::LayerTable& table,
                             const std::vector<std::size_t>& cuts, const LayerArrays& weights,
                             Precision precision) {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const std::size_t end = i + 1 < cuts.size() ? cuts[i + 1] : table.layers.size();
    std::vector<float> flat;
    for (std::size_t layer = cuts[i]; layer < end; ++layer) {
      flat.insert(flat.end(), weights[layer].begin(), weights[layer].end());
    }
    // What is there before the first micro-batch must not matter.
    parts.push_back(
        {cuts[i], end, as_bytes(flat, precision), std::vector<float>(flat.size(), 1e9F)});
  }
  return parts;
}

// As partitioned_step, with AutogradSubModel on the CPU.
StepResult autograd_step(const offstage::workloads::LayerTable& table,
                         const std::vector<std::size_t>& cuts, const LayerArrays& weights,
                         const std::vector<MicroBatch>& batches, Precision precision) {
  const std::size_t tokens = batches[0].inputs.size();
  const auto boundary =
      tokens * static_cast<std::size_t>(table.model.hidden) * (precision == Precision::f32 ? 4 : 2);
  const std::vector<std::byte> embedding = as_bytes(weights[0], precision);
  std::vector<Part> parts = make_parts(table, cuts, weights, precision);
  StepResult result;
  result.tied_gradient.assign(table.model.tied_embeddings
                                  ? static_cast<std::size_t>(table.model.vocab * table.model.hidden)
                                  : 0,
                              1e9F);
  for (std::size_t m = 0; m < batches.size(); ++m) {
    const Tokens ids{batches[m].inputs.data(), batches[m].targets.data()};
    std::vector<std::vector<std::byte>> activations(parts.size(), std::vector<std::byte>(boundary));
    std::vector<std::byte> carried(boundary);
    for (std::size_t k = 0; k + 1 < parts.size(); ++k) {
      const AutogradSubModel part(table, parts[k].first, parts[k].last, precision, {});
      part.forward({parts[k].weights.data(), embedding.data()}, ids,
                   k > 0 ? activations[k].data() : nullptr, activations[k + 1].data());
    }
    for (std::size_t k = parts.size(); k-- > 0;) {
      const AutogradSubModel part(table, parts[k].first, parts[k].last, precision, {});
      float loss = 0.0F;
      part.backward({parts[k].weights.data(), embedding.data()}, ids,
                    {.input = k > 0 ? activations[k].data() : nullptr,
                     .output_gradient = carried.data(),
                     .input_gradient = carried.data(),
                     .loss_tokens = static_cast<std::int64_t>(tokens * batches.size()),
                     .gradients = {parts[k].gradients.data(), result.tied_gradient.data(), m > 0},
                     .loss = &loss});
      result.loss += static_cast<double>(loss);
    }
  }
  for (const Part& part : parts) {
    auto begin = part.gradients.begin();
    for (std::size_t layer = part.first; layer < part.last; ++layer) {
      result.gradients.emplace_back(begin, begin + table.layer(layer).parameter_count);
      begin += table.layer(layer).parameter_count;
    }
  }
  return result;
}

// |a - b| / |b|, of vectors.
double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0.0, norm = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(b[i]), 2);
  }
  return norm > 0.0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

void check_close(const StepResult& ours, const StepResult& reference, double loss_tolerance,
                 double gradient_tolerance) {
  CHECK(ours.loss == Approx(reference.loss).epsilon(loss_tolerance));
  CHECK(relative_error(ours.tied_gradient, reference.tied_gradient) < gradient_tolerance);
  REQUIRE(ours.gradients.size() == reference.gradients.size());
  for (std::size_t layer = 0; layer < ours.gradients.size(); ++layer) {
    CAPTURE(layer);
    CHECK(relative_error(ours.gradients[layer], reference.gradients[layer]) < gradient_tolerance);
  }
}

// Every layer by itself, blocks together with embedding and head, and all in one.
const std::vector<std::vector<std::size_t>> kCuts = {{0, 1, 2, 3, 4}, {0, 2, 3}, {0}};

void check_model(const offstage::workloads::Model& model, Precision precision,
                 double loss_tolerance, double gradient_tolerance) {
  set_compute_threads(1);
  const auto table = table_of(model, 2, 16);
  const LayerArrays weights = make_weights(table, 5);
  const auto batches = make_batches(table, 2, 7);
  const StepResult reference = partitioned_step(table, {0, 1, 2, 3, 4}, weights, batches);
  for (const auto& cuts : kCuts) {
    CAPTURE(model.name, cuts);
    check_close(autograd_step(table, cuts, weights, batches, precision), reference, loss_tolerance,
                gradient_tolerance);
  }
}

}  // namespace

// f32 sums in another order: a rounding (6e-8) of each of the few hundred terms of a sum, adding up
// like a random walk, is 1e-6; measured 2e-7. 1e-5 leaves room for other kernels and is far below
// what a wrong formula would do.
TEST_CASE("autograd's gradients in f32 are those of the written-out layers", "[exec]") {
  check_model(gpt2_model(), Precision::f32, 1e-6, 1e-5);
  check_model(llama_model(false), Precision::f32, 1e-6, 1e-5);
  check_model(llama_model(true), Precision::f32, 1e-6, 1e-5);
  check_model(qwen_model(), Precision::f32, 1e-6, 1e-5);
}

// bf16 keeps 8 bits: weights, activations and each operation's result are rounded by up to 2^-9.
// Some 30 of these in a row through three blocks, adding up like a random walk, are 1 %; measured
// 0.9 %, the loss 2e-5.
TEST_CASE("autograd's gradients in bf16 are near those in f32", "[exec]") {
  check_model(gpt2_model(), Precision::bf16, 1e-3, 0.03);
  check_model(llama_model(false), Precision::bf16, 1e-3, 0.03);
  check_model(llama_model(true), Precision::bf16, 1e-3, 0.03);
}

TEST_CASE("autograd's head in several chunks gives what one chunk gives", "[exec]") {
  set_compute_threads(1);
  auto model = llama_model(false);
  model.vocab = 530'000;  // chunks of 128 tokens, as workloads/logits_chunk.h has it
  model.layers = 1;
  const auto table = table_of(model, 1, 200);
  const LayerArrays weights = make_weights(table, 5);
  const auto batches = make_batches(table, 1, 3);
  check_close(autograd_step(table, {0, 1, 2}, weights, batches, Precision::f32),
              partitioned_step(table, {0, 1, 2}, weights, batches), 1e-6, 1e-5);
}

TEST_CASE("autograd refuses a model the executor can't compute, by name", "[exec]") {
  auto model = gpt2_model();
  model.architecture = "BloomForCausalLM";
  model.embedding_norm = true;
  CHECK_THROWS_WITH(AutogradSubModel(table_of(model, 1, 8), 0, 1, Precision::f32, {}),
                    Catch::Contains("BloomForCausalLM"));
}
