#include "workloads/tensor_slice.h"

#include <string>

#include <catch2/catch.hpp>

#include "platform/document.h"
#include "platform/error.h"
#include "workloads/hf_config.h"
#include "workloads/parameters.h"

namespace offstage::workloads {
namespace {

Model load(const std::string& name) {
  return read_hf_config(platform::Document::load("workloads/data/hf_configs/" + name + ".json"));
}

const Operation& find(const std::vector<Operation>& operations, const std::string& name) {
  for (const Operation& operation : operations) {
    if (operation.name == name) return operation;
  }
  FAIL("no operation " << name);
  return operations.front();
}

TEST_CASE("a rank of Llama-2-70B holds an eighth of every matrix and all norms",
          "[workloads][unit]") {
  const Model slice = tensor_slice(load("llama-2-70b"), 8);
  // Hidden 8192, 64 heads of 128, 8 key-value heads, feed-forward 28672. Of a block: q and out
  // 1024 x 8192 each, k and v 128 x 8192 each, three matrices 3584 x 8192, two norms of 8192.
  CHECK(total_elements(block_parameters(slice, BlockKind::dense)) ==
        2 * 1024 * 8192 + 2 * 128 * 8192 + 3 * 3584 * 8192 + 2 * 8192);
  // Vocabulary 32,000.
  CHECK(total_elements(embedding_parameters(slice)) == 4000 * 8192);
  CHECK(total_elements(head_parameters(slice)) == 4000 * 8192 + 8192);
}

TEST_CASE("the slices of GPT-2 add up to the model, with norms and row biases on each",
          "[workloads][unit]") {
  const Model whole = load("gpt2");
  const Model half = tensor_slice(whole, 2);
  // Twice: two norms of 2 x 768, and the biases of the two row-parallel matrices, 768 each.
  CHECK(2 * total_elements(block_parameters(half, BlockKind::dense)) ==
        total_elements(block_parameters(whole, BlockKind::dense)) + 2 * 2 * 768 + 2 * 768);
  // 50,257 words are padded to 50,258; positions stand on both ranks.
  CHECK(2 * total_elements(embedding_parameters(half)) == (50258 + 2 * 1024) * 768);
}

TEST_CASE("a key-value head that several ranks read stands on each", "[workloads][unit]") {
  Model model = load("llama-2-70b");
  CHECK(tensor_slice(model, 8).kv_heads == 1);
  CHECK(tensor_slice(model, 16).kv_heads == 1);
  model.kv_heads = 6;
  CHECK_THROWS_WITH(tensor_slice(model, 4), Catch::Contains("6 key-value heads"));
}

TEST_CASE("what does not come out even is named", "[workloads][unit]") {
  const Model model = load("gpt2");  // 12 heads
  CHECK(sliceable(model, 4));
  CHECK_FALSE(sliceable(model, 8));
  CHECK_THROWS_WITH(tensor_slice(model, 8), Catch::Contains("12 attention heads"));
}

TEST_CASE("a rank computes its part of every product", "[workloads][unit]") {
  const Batch batch{.micro_batch = 1, .sequence_length = 512};
  const Model whole = load("llama-2-70b");
  const LayerTable table = make_layer_table(tensor_slice(whole, 8), batch);
  const auto& block = table.layer(1);
  // Column-parallel: [512, 8192] x [8192, 3584]; row-parallel: [512, 3584] x [3584, 8192].
  CHECK(find(block.forward, "gate").n == 3584);
  CHECK(find(block.forward, "down").k == 3584);
  CHECK(find(block.forward, "attention_out").k == 1024);
  // Products and attention of the eight ranks are those of the model.
  CHECK(8 * table.flops_per_token().value ==
        Approx(make_layer_table(whole, batch).flops_per_token().value).epsilon(1e-12));
}

TEST_CASE("attention and feed-forward side by side are reduced once", "[workloads][unit]") {
  CHECK(tensor_reductions(load("llama-2-70b"), LayerKind::block).forward == 2);
  CHECK(tensor_reductions(load("gpt-j-6b"), LayerKind::block).forward == 1);
}

}  // namespace
}  // namespace offstage::workloads
