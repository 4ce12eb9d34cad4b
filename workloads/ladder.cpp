#include "workloads/ladder.h"

#include <algorithm>
#include <array>

namespace offstage::workloads {
namespace {

using std::string_view;

constexpr std::array<string_view, 8> kGpt3{"gpt3-125m", "gpt3-350m", "gpt3-760m", "gpt3-1.3b",
                                           "gpt3-2.7b", "gpt3-6.7b", "gpt3-13b",  "gpt3-175b"};
// Without the 350M model, the only one that projects its word vectors to another width.
constexpr std::array<string_view, 8> kOpt{"opt-125m", "opt-1.3b", "opt-2.7b", "opt-6.7b",
                                          "opt-13b",  "opt-30b",  "opt-66b",  "opt-175b"};
constexpr std::array<string_view, 4> kLlama1{"llama-7b", "llama-13b", "llama-30b", "llama-65b"};
constexpr std::array<string_view, 3> kLlama2{"llama-2-7b", "llama-2-13b", "llama-2-70b"};
constexpr std::array<string_view, 5> kLlama3{"llama-3.2-1b", "llama-3.2-3b", "llama-3-8b",
                                             "llama-3-70b", "llama-3.1-405b"};
constexpr std::array<string_view, 4> kQwen2{"qwen2-0.5b", "qwen2-1.5b", "qwen2-7b", "qwen2-72b"};
constexpr std::array<string_view, 5> kQwen25{"qwen2.5-3b", "qwen2.5-7b", "qwen2.5-14b",
                                             "qwen2.5-32b", "qwen2.5-72b"};

constexpr std::array<Ladder, 7> kLadders{{
    {"GPT-3", "Brown et al. 2020, arXiv 2005.14165, table 2.1", Family::gpt2, kGpt3},
    {"OPT", "Zhang et al. 2022, arXiv 2205.01068, table 1", Family::opt, kOpt},
    {"Llama 1", "Touvron et al. 2023, arXiv 2302.13971, table 2", Family::llama, kLlama1},
    {"Llama 2", "Touvron et al. 2023, arXiv 2307.09288, and the hub's config.json", Family::llama,
     kLlama2},
    {"Qwen2", "Yang et al. 2024, arXiv 2407.10671, table 1", Family::llama, kQwen2},
    {"Llama 3", "Dubey et al. 2024, arXiv 2407.21783, table 3; 3.2: the hub's config.json",
     Family::llama, kLlama3},
    {"Qwen2.5", "Yang et al. 2024, arXiv 2412.15115, table 1, and the hub's config.json",
     Family::llama, kQwen25},
}};

}  // namespace

std::span<const Ladder> published_ladders() { return kLadders; }

const Ladder* ladder_of(const Model& model) {
  const auto lists = [&model](const Ladder& ladder) {
    return std::ranges::find(ladder.models, string_view(model.name)) != ladder.models.end();
  };
  const auto named = std::ranges::find_if(kLadders, lists);
  if (named != kLadders.end()) return &*named;
  // Of the Llama family only: Qwen2 differs from it by biases and is published under its own name.
  const bool qwen = model.architecture == "Qwen2ForCausalLM";
  const Ladder* newest = nullptr;
  for (const Ladder& ladder : kLadders) {
    const bool of_qwen = ladder.name.starts_with("Qwen");
    if (ladder.family == model.family && of_qwen == qwen) newest = &ladder;
  }
  return newest;
}

}  // namespace offstage::workloads
