#include "workloads/layer_table.h"

#include <string>

#include <catch2/catch.hpp>

#include "platform/document.h"
#include "platform/error.h"
#include "workloads/hf_config.h"

namespace offstage::workloads {
namespace {

using platform::Document;
using platform::Precision;

Model load(const std::string& name) {
  return read_hf_config(Document::load("workloads/data/hf_configs/" + name + ".json"));
}

TEST_CASE("GPT-2 small computes 807 MFLOP for each token", "[workloads][unit]") {
  // Forward, a token: 12 blocks of 24 h^2 + 2 s h, head 2 V h, with h 768, s 1024, V 50257:
  // 12 x (14,155,776 + 1,572,864) + 77,194,752 = 265,938,432. Backward: products twice
  // (2 x 247,064,064), attention 2.5 times (2.5 x 18,874,368): 541,314,048.
  const LayerTable table = make_layer_table(
      load("gpt2"), {.micro_batch = 4, .sequence_length = 1024, .precision = Precision::bf16});
  CHECK(table.flops_per_token().value == 265938432.0 + 541314048.0);
}

TEST_CASE("Llama-2-7B computes 6 N and 7 L s h for each token", "[workloads][unit]") {
  // Products touch all parameters but embedding and norms: 6,738,415,616 - 32000 x 4096
  // - 65 x 4096 = 6,607,077,376, times 6. Attention: 32 blocks of 2 s h, times 3.5, s = h = 4096.
  const LayerTable table =
      make_layer_table(load("llama-2-7b"),
                       {.micro_batch = 1, .sequence_length = 4096, .precision = Precision::bf16});
  CHECK(table.flops_per_token().value == 6.0 * 6607077376.0 + 3.5 * 32.0 * 2.0 * 4096.0 * 4096.0);
}

TEST_CASE("the layers of a table hold every parameter once", "[workloads][unit]") {
  const Document list = Document::load("workloads/data/parameters.yaml");
  for (const auto& entry : list.root().at("models").items()) {
    const Model model = load(entry.at("name").text());
    CAPTURE(model.name);
    if (!plannable(model)) {
      continue;
    }
    const LayerTable table = make_layer_table(
        model, {.micro_batch = 1, .sequence_length = 128, .precision = Precision::bf16});
    CHECK(table.parameters() == count_parameters(model));
    CHECK(table.layers.size() == static_cast<std::size_t>(model.layers) + 2);
    CHECK(table.layer(0).kind == LayerKind::embedding);
    CHECK(table.layer(table.layers.size() - 1).kind == LayerKind::head);
  }
}

TEST_CASE("Mixtral has 12.9 billion active parameters", "[workloads][unit]") {
  // 46,702,792,704 less six of eight experts in 32 blocks: 32 x 6 x 176,160,768.
  const LayerTable table =
      make_layer_table(load("mixtral-8x7b"),
                       {.micro_batch = 1, .sequence_length = 128, .precision = Precision::bf16});
  CHECK(table.active_parameters() == 12879925248);
}

TEST_CASE("models with experts and grouped queries compute what a token visits",
          "[workloads][unit]") {
  // FLOPs of a token: 6 for each element of the matrices it passes (experts chosen, embedding not),
  // and for causal attention 2 s x heads x (key + value size) / 2 forward, 3.5 times that in all.
  const auto flops = [](const std::string& name) {
    return make_layer_table(
               load(name),
               {.micro_batch = 1, .sequence_length = 2048, .precision = Precision::bf16})
        .flops_per_token()
        .value;
  };
  // Mixtral: q and o 2 x 4096^2, k and v 2 x 1024 x 4096, router 8 x 4096, 2 experts of 3 x 4096 x
  // 14336: 394,297,344 in 32 blocks; head 32000 x 4096. Attention 2 x 2048 x 4096 in 32 blocks.
  CHECK(flops("mixtral-8x7b") ==
        6.0 * (32 * 394297344.0 + 131072000.0) + 3.5 * 32 * 2 * 2048 * 4096.0);
  // Qwen1.5-MoE: 4 x 2048^2 of attention, router 60 x 2048, 4 experts of 3 x 2048 x 1408, a shared
  // one of 3 x 2048 x 5632 with a gate of 2048: 86,108,160 in 24 blocks; head 151936 x 2048.
  CHECK(flops("qwen1.5-moe-a2.7b") ==
        6.0 * (24 * 86108160.0 + 311164928.0) + 3.5 * 24 * 2 * 2048 * 2048.0);
  // DeepSeek-V2-Lite: q 3072 x 2048, latents 576 x 2048 and 4096 x 512, o 2048^2: 13,762,560. First
  // block: 3 x 2048 x 10944 more; 26 others: router 64 x 2048, 6 experts of 3 x 2048 x 1408, shared
  // 3 x 2048 x 2816. Head 102400 x 2048. Keys have 192 numbers, values 128: 16 heads of 160.
  CHECK(flops("deepseek-v2-lite") ==
        6.0 * (13762560.0 + 67239936.0 + 26 * (13762560.0 + 69337088.0) + 209715200.0) +
            3.5 * 27 * 2 * 2048 * 16 * 160.0);
  // Llama-3-70B: q and o 2 x 8192^2, k and v 2 x 1024 x 8192, 3 x 8192 x 28672: 855,638,016 in 80
  // blocks; head 128256 x 8192.
  CHECK(flops("llama-3-70b") ==
        6.0 * (80 * 855638016.0 + 1050673152.0) + 3.5 * 80 * 2 * 2048 * 8192.0);
}

TEST_CASE("DeepSeek-V2's dense block comes before its expert blocks", "[workloads][unit]") {
  const LayerTable table =
      make_layer_table(load("deepseek-v2-lite"),
                       {.micro_batch = 1, .sequence_length = 128, .precision = Precision::bf16});
  CHECK(table.layer(1).name == "dense block");
  CHECK(table.layer(2).name == "expert block");
  CHECK(table.layer(27).name == "expert block");
}

TEST_CASE("a sequence longer than the learned positions is refused", "[workloads][unit]") {
  CHECK_THROWS_WITH(
      make_layer_table(load("gpt2"),
                       {.micro_batch = 1, .sequence_length = 1025, .precision = Precision::bf16}),
      Catch::Contains("1025") && Catch::Contains("at most 1024"));
}

TEST_CASE("rotary and ALiBi models take sequences longer than their file says",
          "[workloads][unit]") {
  const Batch batch{.micro_batch = 1, .sequence_length = 8192, .precision = Precision::bf16};
  CHECK_NOTHROW(make_layer_table(load("llama-2-70b"), batch));
  CHECK_NOTHROW(make_layer_table(load("bloom-7b1"), batch));
}

TEST_CASE("encoder models and impossible batches are refused", "[workloads][unit]") {
  CHECK_THROWS_WITH(make_layer_table(load("bert-large-uncased"), {.sequence_length = 128}),
                    Catch::Contains("encoder model") && Catch::Contains("BertForMaskedLM"));
  CHECK_THROWS_WITH(make_layer_table(load("t5-3b"), {.sequence_length = 128}),
                    Catch::Contains("T5ForConditionalGeneration"));
  CHECK_THROWS_AS(make_layer_table(load("gpt2"), {.micro_batch = 0, .sequence_length = 8}), Error);
  CHECK_THROWS_AS(make_layer_table(load("gpt2"), {.micro_batch = 1, .sequence_length = 0}), Error);
}

}  // namespace
}  // namespace offstage::workloads
