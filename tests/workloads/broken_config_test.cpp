#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/document.h"
#include "workloads/hf_config.h"

namespace offstage::workloads {
namespace {

struct Broken {
  const char* what;
  std::string text;
  std::vector<std::string> said;  // parts of the message: place, value, remedy
};

// A well-formed GPT-2 on six lines with one value replaced.
std::string gpt2_with(const std::string& key, const std::string& value) {
  const std::vector<std::pair<std::string, std::string>> keys = {
      {"architectures", "[\"GPT2LMHeadModel\"]"},
      {"n_layer", "2"},
      {"n_embd", "8"},
      {"n_head", "2"},
      {"vocab_size", "10"},
      {"n_positions", "4"}};
  std::string text = "{";
  for (const auto& [name, plain] : keys) {
    const std::string& written = name == key ? value : plain;
    if (!written.empty()) {
      text += (text.size() == 1 ? "\n\"" : ",\n\"") + name + "\": " + written;
    }
  }
  return text + "\n}\n";
}

std::string llama_with(const std::string& more) {
  return R"({"architectures": ["LlamaForCausalLM"], "hidden_size": 64, "intermediate_size": 172,
"num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
)" + more +
         "}";
}

std::string mixtral_with(const std::string& more) {
  return R"({"architectures": ["MixtralForCausalLM"], "hidden_size": 64, "intermediate_size": 172,
"num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
)" + more +
         "}";
}

std::vector<Broken> broken_structures() {
  return {
      {"truncated", R"({"architectures": ["GPT2LMHeadModel"], "n_layer": 2,)", {"broken.json:"}},
      {"an array instead of an object", "[1, 2]", {"broken.json:1:1", "expected a map"}},
      {"a bare number", "12", {"broken.json:1:1", "expected a map"}},
      {"empty object", "{}", {"neither architectures nor model_type", "LlamaForCausalLM"}},
      {"empty architectures, no type", R"({"architectures": []})", {"neither", "supported are"}},
      {"architectures is a number", R"({"architectures": 3})", {"broken.json:1", "a list"}},
      {"architectures holds a number", R"({"architectures": [3]})", {"architectures[0]", "text"}},
      {"unknown architecture",
       R"({"architectures": ["MambaForCausalLM"]})",
       {"broken.json:1", "MambaForCausalLM is not supported", "supported are", "OPTForCausalLM"}},
      {"a slip in the architecture",
       R"({"architectures": ["LlamaForCausualLM"]})",
       {"did you mean LlamaForCausalLM?"}},
      {"a headless architecture",
       R"({"architectures": ["LlamaForSequenceClassification"]})",
       {"is not supported", "LlamaForCausalLM"}},
      {"unknown model type", R"({"model_type": "rwkv"})", {"model type rwkv is not supported"}},
      {"type against architecture",
       R"({"architectures": ["GPT2LMHeadModel"], "model_type": "opt"})",
       {"model_type opt contradicts architecture GPT2LMHeadModel", "keep one"}},
  };
}

std::vector<Broken> broken_sizes() {
  return {
      {"no layers key", gpt2_with("n_layer", ""), {"n_layer", "num_hidden_layers", "is missing"}},
      {"no vocabulary", gpt2_with("vocab_size", ""), {"vocab_size is missing", "16777216"}},
      {"null size", gpt2_with("n_embd", "null"), {"n_embd", "is missing"}},
      {"zero heads", gpt2_with("n_head", "0"), {"broken.json:5:", "n_head", "from 1 to"}},
      {"negative layers", gpt2_with("n_layer", "-3"), {"broken.json:3:", "from 1 to 10000", "-3"}},
      {"huge hidden size", gpt2_with("n_embd", "99999999999"), {"n_embd", "from 1 to 1048576"}},
      {"beyond 64 bits", gpt2_with("n_embd", "1e300"), {"n_embd", "from 1 to 1048576"}},
      {"a fraction of a layer", gpt2_with("n_layer", "2.5"), {"n_layer", "whole number"}},
      {"text for a number", gpt2_with("n_layer", "\"two\""), {"n_layer", "whole number", "two"}},
      {"a quoted number", gpt2_with("n_layer", "\"2\""), {"n_layer", "whole number"}},
      {"a list for a number", gpt2_with("n_layer", "[2]"), {"n_layer", "whole number", "a list"}},
      {"heads that do not divide",
       gpt2_with("n_head", "3"),
       {"broken.json:5:", "hidden size 8 is not divisible by 3 heads"}},
      {"more parameters than there is paper",
       R"({"architectures": ["GPT2LMHeadModel"], "n_layer": 10000, "n_embd": 1048576,
        "n_head": 1024, "vocab_size": 16777216, "n_positions": 4})",
       {"parameters", "Check layers"}},
      {"two spellings that disagree",
       R"({"architectures": ["GPT2LMHeadModel"], "n_layer": 2, "num_hidden_layers": 3})",
       {"num_hidden_layers = 3 contradicts n_layer = 2"}},
  };
}

std::vector<Broken> broken_variants() {
  return {
      {"key-value heads that do not divide",
       llama_with("\"num_key_value_heads\": 3"),
       {"broken.json:3:", "4 heads are not divisible by 3 key-value heads"}},
      {"more key-value heads than heads",
       llama_with("\"num_key_value_heads\": 8"),
       {"not divisible by 8"}},
      {"an odd head size", llama_with("\"head_dim\": 15"), {"head_dim", "even number", "15"}},
      {"unknown activation",
       llama_with("\"hidden_act\": \"geluu\""),
       {"hidden_act", "expected one of", "did you mean 'gelu'"}},
      {"a flag that is a word",
       llama_with("\"tie_word_embeddings\": \"no\""),
       {"tie_word_embeddings", "true or false"}},
      {"rope_scaling that is a number", llama_with("\"rope_scaling\": 8"), {"rope_scaling", "map"}},
      {"no window at all", llama_with("\"sliding_window\": 0"), {"sliding_window", "from 1 to"}},
      {"negative epsilon", llama_with("\"rms_norm_eps\": -1e-5"), {"rms_norm_eps", "from 0 to 1"}},
      {"no experts", mixtral_with("\"num_experts_per_tok\": 2"), {"num_local_experts is missing"}},
      {"more experts used than there are",
       mixtral_with("\"num_experts_per_tok\": 9, \"num_local_experts\": 8"),
       {"num_experts_per_tok", "9 experts per token", "1 to 8"}},
      {"rotary wider than a head",
       R"({"architectures": ["GPTJForCausalLM"], "n_layer": 2, "n_embd": 64, "n_head": 4,
        "vocab_size": 100, "rotary_dim": 32})",
       {"rotary_dim", "at most the head's 16", "32"}},
      {"norms on queries in MPT",
       R"({"architectures": ["MPTForCausalLM"], "n_layers": 2, "d_model": 64, "n_heads": 4,
        "vocab_size": 100, "max_seq_len": 16, "attn_config": {"qk_ln": true}})",
       {"attn_config.qk_ln", "set it to false"}},
      {"experts in every second layer",
       R"({"architectures": ["Qwen2MoeForCausalLM"], "hidden_size": 64, "intermediate_size": 172,
        "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
        "decoder_sparse_step": 2})",
       {"decoder_sparse_step", "only 1"}},
      {"attn_config that is no map",
       R"({"architectures": ["MPTForCausalLM"], "n_layers": 2, "d_model": 64, "n_heads": 4,
        "vocab_size": 100, "max_seq_len": 16, "attn_config": 3})",
       {"attn_config", "expected a map"}},
  };
}

void check_refused(const std::vector<Broken>& table) {
  for (const Broken& broken : table) {
    CAPTURE(broken.what);
    try {
      read_hf_config(platform::Document::parse("broken.json", broken.text, true));
      FAIL_CHECK("was read");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_input);
      const std::string message = error.what();
      CHECK_THAT(message, Catch::Contains("broken.json:"));
      for (const std::string& part : broken.said) {
        CHECK_THAT(message, Catch::Contains(part));
      }
    }
  }
}

TEST_CASE("a config of the wrong structure is refused with place and remedy", "[workloads][unit]") {
  check_refused(broken_structures());
}

TEST_CASE("a config with an impossible size is refused with place and remedy",
          "[workloads][unit]") {
  check_refused(broken_sizes());
}

TEST_CASE("a config of a variant that can't be counted is refused with place and remedy",
          "[workloads][unit]") {
  check_refused(broken_variants());
}

}  // namespace
}  // namespace offstage::workloads
