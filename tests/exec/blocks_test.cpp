#include "exec/blocks.h"

#include <cstring>

#include <catch2/catch.hpp>

#include "platform/error.h"
#include "tests/exec/reference_model.h"
#include "tests/exec/small_models.h"

using namespace offstage::exec;
using namespace offstage::exec::testing;

namespace {

// Elements that are not the same number. 0 and -0 are: autograd adds zeros where a slice was cut
// out, which turns -0 into 0 and changes nothing that comes after.
std::size_t differing(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    count += a[i] == b[i] ? 0 : 1;
  }
  return count;
}

void check_same(const StepResult& ours, const StepResult& reference) {
  CHECK(ours.loss == reference.loss);
  CHECK(differing(ours.tied_gradient, reference.tied_gradient) == 0);
  REQUIRE(ours.gradients.size() == reference.gradients.size());
  for (std::size_t layer = 0; layer < ours.gradients.size(); ++layer) {
    CAPTURE(layer);
    CHECK(differing(ours.gradients[layer], reference.gradients[layer]) == 0);
  }
}

struct Shape {
  std::int64_t micro_batch, sequence_length;
  int batches;
};

// Three blocks, so layers 0 ... 4: every layer by itself; pairs; embedding and head in one with
// blocks; the whole model as one sub-model.
const std::vector<std::vector<std::size_t>> kCuts = {
    {0, 1, 2, 3, 4}, {0, 1, 3, 4}, {0, 1, 4}, {0, 2, 3}, {0}};

void check_model(const offstage::workloads::Model& model) {
  set_compute_threads(1);
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{1, 7, 3}, Shape{2, 16, 2}, Shape{3, 33, 3}}) {
    const auto table = table_of(model, shape.micro_batch, shape.sequence_length);
    const LayerArrays weights = make_weights(table, 5);
    const auto batches = make_batches(table, shape.batches, 7);
    const StepResult reference = reference_step(table, weights, batches);
    for (const auto& cuts : kCuts) {
      CAPTURE(model.name, shape.micro_batch, shape.sequence_length, cuts);
      check_same(partitioned_step(table, cuts, weights, batches), reference);
    }
  }
}

}  // namespace

TEST_CASE("a GPT-2 cut anywhere has the gradients of the one trained as one piece", "[exec]") {
  check_model(gpt2_model());
}

TEST_CASE("a Llama with grouped queries cut anywhere has the gradients of one piece", "[exec]") {
  check_model(llama_model(false));
}

TEST_CASE("a Llama with tied embeddings cut anywhere has the gradients of one piece", "[exec]") {
  check_model(llama_model(true));
}

TEST_CASE("a Qwen2 with biases cut anywhere has the gradients of one piece", "[exec]") {
  check_model(qwen_model());
}

TEST_CASE("models of a usual width keep their bits too", "[exec]") {
  set_compute_threads(1);
  offstage::workloads::Model model = GENERATE(gpt2_model(), llama_model(false));
  model.layers = 1;
  model.hidden = model.embedding_dim = 256;
  model.heads = 8;
  model.head_dim = 32;
  model.rotary_dim = model.rotary_dim > 0 ? 32 : 0;
  model.kv_heads = model.gated ? 2 : 8;
  model.ffn = 1024;
  model.position_rows = model.max_positions = 256;
  const auto table = table_of(model, 2, 200);
  const LayerArrays weights = make_weights(table, 11);
  const auto batches = make_batches(table, 2, 13);
  check_same(partitioned_step(table, {0, 1, 2}, weights, batches),
             reference_step(table, weights, batches));
}

TEST_CASE("forward with the head gives the loss that backward reports", "[exec]") {
  set_compute_threads(1);
  const auto table = table_of(gpt2_model(), 2, 9);
  const LayerArrays weights = make_weights(table, 1);
  const auto batches = make_batches(table, 1, 2);
  std::vector<float> all;
  for (const auto& layer : weights) {
    all.insert(all.end(), layer.begin(), layer.end());
  }
  const SubModelCompute whole(table, 0, table.layers.size());
  CHECK(whole.has_embedding());
  CHECK(whole.has_head());
  CHECK(whole.has_tied_head());
  CHECK(whole.parameter_count() == static_cast<std::int64_t>(all.size()));
  const double loss =
      whole.forward({all.data(), nullptr}, {batches[0].inputs.data(), batches[0].targets.data()},
                    nullptr, nullptr);
  CHECK(loss == partitioned_step(table, {0}, weights, batches).loss);
}

TEST_CASE("a head in chunks of tokens gives what as many micro-batches of a chunk give", "[exec]") {
  set_compute_threads(1);
  auto model = llama_model(false);
  model.vocab = 530'000;  // chunks of 128 tokens
  const auto run = [&](std::int64_t tokens, const std::vector<float>& input, std::int64_t first,
                       std::vector<float>& gradients, std::vector<float>& input_gradient) {
    const auto table = table_of(model, 1, tokens);
    const std::size_t head = table.layers.size() - 1;
    const SubModelCompute part(table, head, head + 1);
    const std::vector<float> weights = make_weights(table, 5).back();
    const bool accumulate = !gradients.empty();
    gradients.resize(weights.size());
    std::vector<std::int64_t> targets(200);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      targets[i] = static_cast<std::int64_t>(7919 * i) % model.vocab;
    }
    const std::int64_t offset = first * model.hidden;
    return part.backward({weights.data(), nullptr},
                         {targets.data() + first, targets.data() + first},
                         {.input = input.data() + offset,
                          .output_gradient = nullptr,
                          .input_gradient = input_gradient.data() + offset,
                          .loss_tokens = 200,
                          .gradients = {gradients.data(), nullptr, accumulate}});
  };
  std::vector<float> input(static_cast<std::size_t>(200 * model.hidden));
  for (std::size_t i = 0; i < input.size(); ++i) {
    input[i] = static_cast<float>(i % 17) - 8.0F;
  }
  std::vector<float> dx(input.size()), dx_parts(input.size());
  std::vector<float> gradients, in_parts;
  const double loss = run(200, input, 0, gradients, dx);
  const double loss_of_parts =
      run(128, input, 0, in_parts, dx_parts) + run(72, input, 128, in_parts, dx_parts);
  CHECK(loss == loss_of_parts);
  CHECK(differing(dx, dx_parts) == 0);
  // The norm's gradient is one sum over all tokens in the one and two sums in the other.
  const auto norm = static_cast<std::ptrdiff_t>(model.hidden);
  CHECK(differing({gradients.begin() + norm, gradients.end()},
                  {in_parts.begin() + norm, in_parts.end()}) == 0);
}

TEST_CASE("a model the executor can't compute is refused by name", "[exec]") {
  offstage::workloads::Model model = gpt2_model();
  model.family = offstage::workloads::Family::bloom;
  model.architecture = "BloomForCausalLM";
  model.positions = offstage::workloads::Positions::alibi;
  model.embedding_norm = true;
  REQUIRE_THROWS_WITH(SubModelCompute(table_of(model, 1, 8), 0, 1),
                      Catch::Contains("BloomForCausalLM") && Catch::Contains("GPT-2-style"));
}

TEST_CASE("attention the executor would compute wrongly is refused", "[exec]") {
  offstage::workloads::Model model = llama_model(false);
  model.rope_scaled = true;
  CHECK_THROWS_WITH(SubModelCompute(table_of(model, 1, 8), 0, 1), Catch::Contains("rope_scaling"));
  model.rope_scaled = false;
  model.sliding_window = 8;
  // A window of the whole sequence is no window.
  CHECK_NOTHROW(SubModelCompute(table_of(model, 1, 8), 0, 1));
  CHECK_THROWS_WITH(SubModelCompute(table_of(model, 1, 9), 0, 1),
                    Catch::Contains("sequence_length is 9") && Catch::Contains("at most 8"));
}
