#include "workloads/operations.h"

#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/document.h"
#include "workloads/hf_config.h"

namespace offstage::workloads {
namespace {

using platform::Precision;

Model load(const std::string& name) {
  return read_hf_config(platform::Document::load("workloads/data/hf_configs/" + name + ".json"));
}

const Operation& find(const std::vector<Operation>& operations, const std::string& name) {
  for (const Operation& operation : operations) {
    if (operation.name == name) {
      return operation;
    }
  }
  FAIL("no operation " << name);
  return operations.front();
}

double flops(const std::vector<Operation>& operations) {
  double sum = 0.0;
  for (const Operation& operation : operations) {
    sum += operation.flops.value;
  }
  return sum;
}

TEST_CASE("a block of GPT-2 computes 24 h^2 and 2 s h a token forward", "[workloads][unit]") {
  // Products: 2 (3 + 1 + 4 + 4) h^2 = 24 h^2 a token. Causal attention: half of 4 s^2 d a head, so
  // 2 s h a token. h = 768, s = 1024, two sequences: 2048 tokens.
  const Batch batch{.micro_batch = 2, .sequence_length = 1024, .precision = Precision::bf16};
  const Passes passes = block_operations(load("gpt2"), batch, BlockKind::dense);
  const double products = 2048.0 * 24.0 * 768.0 * 768.0;
  const double attention = 2048.0 * 2.0 * 1024.0 * 768.0;
  CHECK(flops(passes.forward) == products + attention);
  // Each product has two of its size behind it, attention 2.5 of its size.
  CHECK(flops(passes.backward) == 2.0 * products + 2.5 * attention);
}

TEST_CASE("a product and its two gradients have the shapes of the chain rule",
          "[workloads][unit]") {
  const Batch batch{.micro_batch = 2, .sequence_length = 8, .precision = Precision::bf16};
  const Passes passes = block_operations(load("gpt2"), batch, BlockKind::dense);
  const Operation& forward = find(passes.forward, "fc_in");
  CHECK(forward.m == 16);
  CHECK(forward.n == 3072);
  CHECK(forward.k == 768);
  // 16 x 768 in, 768 x 3072 weights, 16 x 3072 out, 2 bytes each.
  CHECK(forward.bytes.value == 2 * (16 * 768 + 768 * 3072 + 16 * 3072));
  const Operation& dgrad = find(passes.backward, "fc_in.dgrad");
  CHECK(dgrad.n == 768);
  CHECK(dgrad.k == 3072);
  const Operation& wgrad = find(passes.backward, "fc_in.wgrad");
  CHECK(wgrad.m == 3072);
  CHECK(wgrad.n == 768);
  CHECK(wgrad.k == 16);
  // Operands in bf16; the gradient is read and written in f32.
  CHECK(wgrad.bytes.value == 2 * 16 * (3072 + 768) + 8 * 3072 * 768);
}

TEST_CASE("f32 adds a weight's gradient in an operation of its own", "[workloads][unit]") {
  const Batch batch{.micro_batch = 1, .sequence_length = 8, .precision = Precision::f32};
  const Passes passes = block_operations(load("gpt2"), batch, BlockKind::dense);
  const Operation& add = find(passes.backward, "fc_in.accumulate");
  CHECK(add.kind == OperationKind::memory);
  CHECK(add.bytes.value == 12 * 3072 * 768);
}

TEST_CASE("grouped queries make the products of keys and values smaller", "[workloads][unit]") {
  // Llama-2-70B: h = 8192, 8 of 64 heads for keys, ffn 28672, s = 4096. A token's products:
  // 2 h (h + 2 h / 8 + h + 3 x 28672); attention 2 s h as without groups.
  const Batch batch{.micro_batch = 1, .sequence_length = 4096, .precision = Precision::bf16};
  const Passes passes = block_operations(load("llama-2-70b"), batch, BlockKind::dense);
  const double products = 2.0 * 8192.0 * (8192.0 + 2048.0 + 8192.0 + 3.0 * 28672.0);
  const double attention = 2.0 * 4096.0 * 8192.0;
  CHECK(flops(passes.forward) == 4096.0 * (products + attention));
  CHECK(find(passes.forward, "k").n == 1024);
}

TEST_CASE("attention that stores its scores reads and writes the whole square",
          "[workloads][unit]") {
  // GPT-2: 12 heads of 64. Two sequences of 8: 24 products of 8 x 8 x 64, 24 x 64 = 1536 scores.
  const Batch batch{.micro_batch = 2,
                    .sequence_length = 8,
                    .precision = Precision::bf16,
                    .kernels = {.attention = AttentionKernel::unfused, .dropout = true}};
  const Passes passes = block_operations(load("gpt2"), batch, BlockKind::dense);
  const Operation& scores = find(passes.forward, "attention.scores");
  CHECK(scores.count == 24);
  CHECK(scores.batched);
  CHECK(scores.kernels == 1);
  CHECK(scores.flops.value == 24.0 * 2.0 * 8.0 * 8.0 * 64.0);
  CHECK(scores.bytes.value == 24 * 2 * (8 * 64 + 64 * 8 + 8 * 8));
  // Read and written in 2 bytes; dropout's mask is one byte more.
  CHECK(find(passes.forward, "attention.softmax").bytes.value == 4 * 1536);
  CHECK(find(passes.forward, "attention.dropout").bytes.value == 5 * 1536);
  CHECK(find(passes.backward, "attention.softmax.backward").bytes.value == 6 * 1536);
  // Products: each forward one has two of its size behind it.
  const double products = 16.0 * 24.0 * 768.0 * 768.0;
  const double attention = 24.0 * 4.0 * 8.0 * 8.0 * 64.0;
  CHECK(flops(passes.forward) == products + attention);
  CHECK(flops(passes.backward) == 2.0 * (products + attention));
}

TEST_CASE("dropout masks both residuals and the embedding", "[workloads][unit]") {
  const Batch batch{.micro_batch = 1,
                    .sequence_length = 8,
                    .precision = Precision::bf16,
                    .kernels = {.dropout = true}};
  const Passes block = block_operations(load("gpt2"), batch, BlockKind::dense);
  // 8 x 768 elements: three planes of 2 bytes and a mask; backward masks one plane to another.
  CHECK(find(block.forward, "ffn_add").bytes.value == 7 * 8 * 768);
  CHECK(find(block.backward, "ffn_add.mask").bytes.value == 5 * 8 * 768);
  const Passes embedding = embedding_operations(load("gpt2"), batch);
  CHECK(find(embedding.forward, "embedding_dropout").bytes.value == 5 * 8 * 768);
}

TEST_CASE("autograd keeps the activation's result instead of computing it again",
          "[workloads][unit]") {
  Batch batch{.micro_batch = 1, .sequence_length = 8, .precision = Precision::bf16};
  const auto again = [&](const std::string& model) {
    const Passes passes = block_operations(load(model), batch, BlockKind::dense);
    return std::ranges::count(passes.backward, "activation.again", &Operation::name);
  };
  CHECK(again("gpt2") == 1);
  CHECK(again("llama-2-7b") == 1);
  batch.kernels.autograd = true;
  CHECK(again("gpt2") == 0);
  CHECK(again("llama-2-7b") == 0);
}

TEST_CASE("a loss in many kernels moves the bytes it is said to", "[workloads][unit]") {
  const Batch batch{.micro_batch = 1,
                    .sequence_length = 16,
                    .precision = Precision::bf16,
                    .kernels = {.loss_bytes_per_logit = 41}};
  const Passes passes = head_operations(load("gpt2"), batch);
  const std::int64_t both = find(passes.forward, "cross_entropy").bytes.value +
                            find(passes.backward, "cross_entropy.backward").bytes.value;
  CHECK(both == 41 * 16 * 50257);
}

TEST_CASE("a mixture of experts computes the active experts only", "[workloads][unit]") {
  // 2048 tokens to 2 of 8 experts: 4096 rows, 512 for each.
  const Batch batch{.micro_batch = 1, .sequence_length = 2048, .precision = Precision::bf16};
  const Passes passes = block_operations(load("mixtral-8x7b"), batch, BlockKind::experts);
  const Operation& gate = find(passes.forward, "expert_gate");
  CHECK(gate.m == 512);
  CHECK(gate.count == 8);
  CHECK(gate.kernels == 8);
  CHECK(gate.flops.value == 2.0 * 4096.0 * 14336.0 * 4096.0);
}

TEST_CASE("rows that do not divide among experts are counted exactly", "[workloads][unit]") {
  // 3 tokens to 4 of 60 experts: 12 rows, one for each of 12 experts.
  const Batch batch{.micro_batch = 1, .sequence_length = 3, .precision = Precision::bf16};
  const Passes passes = block_operations(load("qwen1.5-moe-a2.7b"), batch, BlockKind::experts);
  const Operation& gate = find(passes.forward, "expert_gate");
  CHECK(gate.count == 12);
  CHECK(gate.m == 1);
  CHECK(gate.flops.value == 2.0 * 12.0 * 1408.0 * 2048.0);
}

TEST_CASE("latent attention counts different widths of keys and values", "[workloads][unit]") {
  // 16 heads, queries and keys of 192, values of 128: 2 s^2 (192 + 128) a head, halved (causal).
  const Batch batch{.micro_batch = 1, .sequence_length = 1024, .precision = Precision::bf16};
  const Passes passes = block_operations(load("deepseek-v2-lite"), batch, BlockKind::dense);
  CHECK(find(passes.forward, "attention").flops.value == 16.0 * 1024.0 * 1024.0 * (192.0 + 128.0));
}

TEST_CASE("backward is forward reversed", "[workloads][unit]") {
  const Batch batch{.micro_batch = 1, .sequence_length = 8, .precision = Precision::bf16};
  const Passes passes = block_operations(load("llama-2-7b"), batch, BlockKind::dense);
  CHECK(passes.forward.front().name == "attention_norm");
  CHECK(passes.backward.front().name == "ffn_add.backward");
  CHECK(passes.backward.back().name == "attention_norm.backward");
}

TEST_CASE("the head's loss reads bf16 logits and writes f32 ones", "[workloads][unit]") {
  const Batch batch{.micro_batch = 1, .sequence_length = 16, .precision = Precision::bf16};
  const Passes passes = head_operations(load("gpt2"), batch);
  CHECK(find(passes.forward, "lm_head").flops.value == 2.0 * 16.0 * 50257.0 * 768.0);
  CHECK(find(passes.forward, "cross_entropy").bytes.value == 6 * 16 * 50257);
}

TEST_CASE("f32 counts the operations that the executor calls", "[workloads][unit]") {
  const auto kernels = [](const std::vector<Operation>& operations) {
    int sum = 0;
    for (const Operation& operation : operations) {
      sum += operation.kernels;
    }
    return sum;
  };
  const Batch batch{.micro_batch = 1, .sequence_length = 16, .precision = Precision::f32};
  // exec/gpt2_block.cpp forward: two norms, four products, attention, activation, two additions.
  // Backward, for each product: two products, the weight's gradient added, the bias's summed and
  // added, 5 x 4; activation again and back, 2; norms with two gradients added, 3 x 2; attention 1;
  // q, k, v copied, 3; two additions of the stream; the input's gradient copied, 1.
  const Passes gpt2 = block_operations(load("gpt2"), batch, BlockKind::dense);
  CHECK(kernels(gpt2.forward) == 10);
  CHECK(kernels(gpt2.backward) == 20 + 2 + 6 + 1 + 3 + 2 + 1);
  // exec/llama_block.cpp with grouped queries: two norms of six, seven products, attention, a
  // rotation, two repeats, two for the gated activation, two additions. Backward: three for each
  // product; norms of fifteen; attention; rotation; repeats again and summed, 4; activation 5;
  // three sums of products' gradients; two additions of the stream.
  const Passes llama = block_operations(load("llama-2-70b"), batch, BlockKind::dense);
  CHECK(kernels(llama.forward) == 12 + 7 + 1 + 1 + 2 + 2 + 2);
  CHECK(kernels(llama.backward) == 21 + 30 + 1 + 1 + 4 + 5 + 3 + 2);
}

TEST_CASE("the head's product comes in chunks of tokens, with the weights read for each",
          "[workloads][unit]") {
  // 128,256 words: 1,024 tokens are 501 MiB of f32 logits. 131,072 tokens are 128 chunks.
  const Batch batch{.micro_batch = 1, .sequence_length = 131072};
  const Passes passes = head_operations(load("llama-3-70b"), batch);
  const Operation& product = find(passes.forward, "lm_head");
  CHECK(product.m == 1024);
  CHECK(product.count == 128);
  CHECK(product.flops.value == 2.0 * 131072.0 * 128256.0 * 8192.0);
  CHECK(product.bytes.value == 2LL * (131072LL * 8192 + 128LL * 8192 * 128256 + 131072LL * 128256));
}

}  // namespace
}  // namespace offstage::workloads
