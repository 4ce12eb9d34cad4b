#include "workloads/parameters.h"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/document.h"
#include "workloads/hf_config.h"

namespace offstage::workloads {
namespace {

using Shape = std::vector<std::int64_t>;

Model load(const std::string& name) {
  return read_hf_config(platform::Document::load("workloads/data/hf_configs/" + name + ".json"));
}

const ParameterTensor& find(const std::vector<ParameterTensor>& tensors, const std::string& name) {
  for (const ParameterTensor& tensor : tensors) {
    if (tensor.name == name) {
      return tensor;
    }
  }
  FAIL("no tensor " << name);
  return tensors.front();
}

TEST_CASE("GPT-2 stores its matrices input first, as Conv1D does", "[workloads][unit]") {
  const auto block = block_parameters(load("gpt2"), BlockKind::dense);
  REQUIRE(block.size() == 12);
  CHECK(block.front().name == "ln_1.weight");
  CHECK(find(block, "attn.c_attn.weight").shape == Shape{768, 2304});
  CHECK(find(block, "mlp.c_proj.weight").shape == Shape{3072, 768});
  // 12 h^2 weights; biases 3h + h + 4h + h and two norms of 2h: 13 h.
  CHECK(total_elements(block) == 12 * 768 * 768 + 13 * 768);
}

TEST_CASE("a tied head holds no matrix of its own", "[workloads][unit]") {
  const auto tied = head_parameters(load("gpt2"));
  REQUIRE(tied.size() == 2);
  CHECK(tied[0].name == "ln_f.weight");
  const auto untied = head_parameters(load("llama-2-7b"));
  CHECK(find(untied, "lm_head.weight").shape == Shape{32000, 4096});
}

TEST_CASE("grouped queries shrink keys and values only", "[workloads][unit]") {
  const auto block = block_parameters(load("llama-2-70b"), BlockKind::dense);
  CHECK(find(block, "self_attn.q_proj.weight").shape == Shape{8192, 8192});
  CHECK(find(block, "self_attn.k_proj.weight").shape == Shape{1024, 8192});
  CHECK(find(block, "mlp.down_proj.weight").shape == Shape{8192, 28672});
}

TEST_CASE("all experts of Mixtral are stored and two of eight are active", "[workloads][unit]") {
  const Model model = load("mixtral-8x7b");
  const auto block = block_parameters(model, BlockKind::experts);
  // One expert: 3 x 4096 x 14336 = 176,160,768; six of them idle.
  CHECK(total_elements(block) - active_elements(model, BlockKind::experts, block) ==
        6 * std::int64_t{176160768});
  CHECK(find(block, "block_sparse_moe.experts.7.w2.weight").shape == Shape{4096, 14336});
}

TEST_CASE("DeepSeek-V2's first block is dense and the others are not", "[workloads][unit]") {
  const Model model = load("deepseek-v2-lite");
  CHECK(block_count(model, BlockKind::dense) == 1);
  CHECK(block_count(model, BlockKind::experts) == 26);
  const auto block = block_parameters(model, BlockKind::dense);
  CHECK(find(block, "self_attn.kv_a_proj_with_mqa.weight").shape == Shape{576, 2048});
  CHECK(find(block, "mlp.gate_proj.weight").shape == Shape{10944, 2048});
}

TEST_CASE("T5 shares one table of relative positions in each stack", "[workloads][unit]") {
  std::int64_t tables = 0;
  for (const ParameterTensor& tensor : encoder_parameters(load("t5-3b"))) {
    tables += tensor.name.ends_with("relative_attention_bias.weight") ? 1 : 0;
  }
  CHECK(tables == 2);
}

}  // namespace
}  // namespace offstage::workloads
