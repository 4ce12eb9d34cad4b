#include "workloads/ladder.h"

#include <cstdint>
#include <string>

#include <catch2/catch.hpp>

#include "workloads/layer_table.h"
#include "workloads/model_library.h"

namespace offstage::workloads {
namespace {

const std::string kModels = "../workloads/models";

Model load(std::string_view name) { return load_model(std::string(name), kModels).model; }

// Norms and biases of a GPT-2 or OPT block: two norms of 2 h, biases of 3h, h, 4h and h.
std::int64_t block_of_width(std::int64_t h) { return 12 * h * h + 13 * h; }

TEST_CASE("a ladder's rungs are models of the library, of its family, and rise",
          "[workloads][unit]") {
  CHECK(published_ladders().size() == 7);
  for (const Ladder& ladder : published_ladders()) {
    std::int64_t below = 0;
    for (const auto name : ladder.models) {
      CAPTURE(name);
      const Model model = load(name);
      CHECK(model.family == ladder.family);
      CHECK(count_parameters(model) > below);
      below = count_parameters(model);
    }
    CHECK_FALSE(ladder.source.empty());
  }
}

TEST_CASE("GPT-3's smallest rung has the width and depth of the paper's table",
          "[workloads][unit]") {
  // 12 blocks of width 768; words 50257 h, positions 2048 h, final norm 2 h.
  const std::int64_t h = 768;
  CHECK(count_parameters(load("gpt3-125m")) == 12 * block_of_width(h) + (50257 + 2048 + 2) * h);
  // 24 blocks of width 1536.
  const std::int64_t w = 1536;
  CHECK(count_parameters(load("gpt3-760m")) == 24 * block_of_width(w) + (50257 + 2048 + 2) * w);
}

TEST_CASE("OPT's rungs have two more position rows than positions", "[workloads][unit]") {
  // 96 blocks of width 12288; words 50272 h, positions 2050 h, final norm 2 h.
  const std::int64_t h = 12288;
  CHECK(count_parameters(load("opt-175b")) == 96 * block_of_width(h) + (50272 + 2050 + 2) * h);
  const std::int64_t w = 2048;
  CHECK(count_parameters(load("opt-1.3b")) == 24 * block_of_width(w) + (50272 + 2050 + 2) * w);
}

TEST_CASE("Llama 3's largest rung has 405 billion parameters", "[workloads][unit]") {
  // Per block: queries and output h^2 each, keys and values 8 heads of 128 each, three
  // feed-forward matrices, two norms. Words and head 128256 h each, final norm h.
  const std::int64_t h = 16384, kv = 8 * 128, ffn = 53248;
  const std::int64_t block = 2 * h * h + 2 * kv * h + 3 * ffn * h + 2 * h;
  CHECK(count_parameters(load("llama-3.1-405b")) == 126 * block + 2 * 128256 * h + h);
}

TEST_CASE("Qwen2.5's middle rung has biases on queries, keys and values", "[workloads][unit]") {
  const std::int64_t h = 5120, kv = 8 * 128, ffn = 13824;
  const std::int64_t block = 2 * h * h + h + 2 * (kv * h + kv) + 3 * ffn * h + 2 * h;
  CHECK(count_parameters(load("qwen2.5-14b")) == 48 * block + 2 * 152064 * h + h);
  // The small ones tie words and head: 24 blocks of width 896 with 2 key-value heads of 64.
  const std::int64_t w = 896, small_kv = 2 * 64, small_ffn = 4864;
  const std::int64_t small =
      2 * w * w + w + 2 * (small_kv * w + small_kv) + 3 * small_ffn * w + 2 * w;
  CHECK(count_parameters(load("qwen2-0.5b")) == 24 * small + 151936 * w + w);
}

TEST_CASE("a model belongs to the ladder that lists it, or to the newest of its family",
          "[workloads][unit]") {
  CHECK(ladder_of(load("llama-2-13b"))->name == "Llama 2");
  CHECK(ladder_of(load("gpt2-xl"))->name == "GPT-3");
  CHECK(ladder_of(load("mistral-7b"))->name == "Llama 3");
  Model qwen = load("qwen2-7b");
  qwen.name = "my-qwen";
  CHECK(ladder_of(qwen)->name == "Qwen2.5");
  CHECK(ladder_of(load("bloom-7b1")) == nullptr);
}

}  // namespace
}  // namespace offstage::workloads
