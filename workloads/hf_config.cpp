#include "workloads/hf_config.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/hf_families.h"

namespace offstage::workloads {
namespace {

struct Architecture {
  const char* name;  // in `architectures`
  Family family;
  void (*read)(const HfKeys&, Model&);
};

// Alphabetical. LLaMAForCausalLM and RWForCausalLM are spellings of the models' first revisions.
constexpr std::array<Architecture, 23> kArchitectures{{
    {"BertForMaskedLM", Family::bert, read_bert},
    {"BertForPreTraining", Family::bert, read_bert},
    {"BertModel", Family::bert, read_bert},
    {"BloomForCausalLM", Family::bloom, read_bloom},
    {"DeepseekV2ForCausalLM", Family::deepseek_v2, read_deepseek_v2},
    {"FalconForCausalLM", Family::falcon, read_falcon},
    {"GPT2LMHeadModel", Family::gpt2, read_gpt2},
    {"GPTJForCausalLM", Family::gptj, read_gptj},
    {"GPTNeoXForCausalLM", Family::gpt_neox, read_gpt_neox},
    {"Gemma2ForCausalLM", Family::gemma2, read_gemma},
    {"GemmaForCausalLM", Family::gemma, read_gemma},
    {"LLaMAForCausalLM", Family::llama, read_llama},
    {"LlamaForCausalLM", Family::llama, read_llama},
    {"MPTForCausalLM", Family::mpt, read_mpt},
    {"MistralForCausalLM", Family::llama, read_llama},
    {"MixtralForCausalLM", Family::mixtral, read_mixtral},
    {"MptForCausalLM", Family::mpt, read_mpt},
    {"OPTForCausalLM", Family::opt, read_opt},
    {"PhiForCausalLM", Family::phi, read_phi},
    {"Qwen2ForCausalLM", Family::llama, read_qwen2},
    {"Qwen2MoeForCausalLM", Family::qwen2_moe, read_qwen2_moe},
    {"RWForCausalLM", Family::falcon, read_falcon},
    {"T5ForConditionalGeneration", Family::t5, read_t5},
}};

// The architecture a `model_type` stands for when `architectures` is absent.
struct ModelType {
  const char* type;
  const char* architecture;
};

constexpr std::array<ModelType, 21> kModelTypes{{
    {"RefinedWeb", "RWForCausalLM"},
    {"RefinedWebModel", "RWForCausalLM"},
    {"bert", "BertModel"},
    {"bloom", "BloomForCausalLM"},
    {"deepseek_v2", "DeepseekV2ForCausalLM"},
    {"falcon", "FalconForCausalLM"},
    {"gemma", "GemmaForCausalLM"},
    {"gemma2", "Gemma2ForCausalLM"},
    {"gpt2", "GPT2LMHeadModel"},
    {"gpt_neox", "GPTNeoXForCausalLM"},
    {"gptj", "GPTJForCausalLM"},
    {"llama", "LlamaForCausalLM"},
    {"mistral", "MistralForCausalLM"},
    {"mixtral", "MixtralForCausalLM"},
    {"mpt", "MPTForCausalLM"},
    {"opt", "OPTForCausalLM"},
    {"phi", "PhiForCausalLM"},
    {"phi-msft", "PhiForCausalLM"},
    {"qwen2", "Qwen2ForCausalLM"},
    {"qwen2_moe", "Qwen2MoeForCausalLM"},
    {"t5", "T5ForConditionalGeneration"},
}};

const Architecture* find_architecture(std::string_view name) {
  const auto* const found = std::ranges::find_if(
      kArchitectures, [&](const Architecture& entry) { return name == entry.name; });
  return found == kArchitectures.end() ? nullptr : found;
}

const Architecture* find_model_type(std::string_view type) {
  const auto* const found =
      std::ranges::find_if(kModelTypes, [&](const ModelType& entry) { return type == entry.type; });
  return found == kModelTypes.end() ? nullptr : find_architecture(found->architecture);
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates) {
  const auto nearest = nearest_match(word, candidates);
  return nearest ? fmt::format("; did you mean {}?", *nearest) : std::string();
}

std::string supported_list() {
  return fmt::format("supported are {}", fmt::join(supported_architectures(), ", "));
}

const Architecture& known_model_type(const platform::Node& node) {
  const std::string type = node.text();
  if (const Architecture* entry = find_model_type(type)) {
    return *entry;
  }
  std::vector<std::string> types;
  for (const ModelType& entry : kModelTypes) {
    types.emplace_back(entry.type);
  }
  throw node.error(fmt::format("model type {} is not supported{}; supported are {}", type,
                               did_you_mean(type, types), fmt::join(types, ", ")));
}

// The entry for a config and the name the file uses for it.
std::pair<const Architecture*, std::string> choose_architecture(const platform::Node& root) {
  const auto type = root.find("model_type");
  const auto list = root.find("architectures");
  if (!list || (list->is_sequence() && list->items().empty())) {
    if (!type) {
      throw root.error(fmt::format(
          "neither architectures nor model_type says what this model is; add \"architectures\": "
          "[\"...\"]; {}",
          supported_list()));
    }
    const Architecture& entry = known_model_type(*type);
    return {&entry, entry.name};
  }
  const platform::Node first = list->items().front();
  const std::string name = first.text();
  const Architecture* entry = find_architecture(name);
  if (entry == nullptr) {
    throw first.error(fmt::format("architecture {} is not supported{}; {}", name,
                                  did_you_mean(name, supported_architectures()), supported_list()));
  }
  if (type) {
    const Architecture* by_type = find_model_type(type->text());
    if (by_type != nullptr && by_type->family != entry->family) {
      throw type->error(fmt::format("model_type {} contradicts architecture {}; keep one of them",
                                    type->text(), name));
    }
  }
  return {entry, name};
}

void check_heads(const HfKeys& keys, Model& model) {
  const HfKeys::Spellings heads = {"num_attention_heads", "n_head", "n_heads", "num_heads"};
  if (model.head_dim == 0) {
    if (model.hidden % model.heads != 0) {
      throw keys.error(heads, fmt::format("the hidden size {} is not divisible by {} heads; choose "
                                          "a number of heads that divides it",
                                          model.hidden, model.heads));
    }
    model.head_dim = model.hidden / model.heads;
  }
  if (model.heads % model.kv_heads != 0) {
    throw keys.error({"num_key_value_heads", "num_kv_heads", "n_head_kv", "attn_config"},
                     fmt::format("{} heads are not divisible by {} key-value heads; choose a "
                                 "divisor of {}",
                                 model.heads, model.kv_heads, model.heads));
  }
  if (model.positions != Positions::rotary) {
    return;
  }
  if (model.rotary_dim == 0) {
    model.rotary_dim = model.head_dim;
  }
  if (model.rotary_dim > model.head_dim || model.rotary_dim % 2 != 0) {
    throw keys.error({"rotary_dim", "rotary_pct", "partial_rotary_factor", "qk_rope_head_dim",
                      "head_dim", "num_attention_heads", "n_head"},
                     fmt::format("rotary positions need an even number of dimensions, at most the "
                                 "head's {}; got {}",
                                 model.head_dim, model.rotary_dim));
  }
}

void check_experts(const HfKeys& keys, const Model& model) {
  if (model.experts && model.experts->per_token > model.experts->count) {
    throw keys.error(
        {"num_experts_per_tok"},
        fmt::format("{} experts per token, but the model has {}; allowed are 1 to {}",
                    model.experts->per_token, model.experts->count, model.experts->count));
  }
}

// A bound on the sums that follow: sizes allowed one by one may still multiply to nonsense.
void check_total(const HfKeys& keys, const Model& model) {
  constexpr double kMaxParameters = 1e15;
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double hidden = number(model.hidden);
  const double attention = 4.0 * hidden * number(model.heads) * number(model.head_dim);
  double ffn = 3.0 * hidden * number(model.ffn);
  if (model.experts) {
    ffn += 3.0 * hidden *
           (number(model.experts->count) * number(model.experts->ffn) +
            number(model.experts->shared_ffn));
  }
  const double blocks = number(model.layers) + 2.0 * number(model.decoder_layers);
  const double rows = 2.0 * number(model.vocab) + number(model.position_rows);
  const double estimate = blocks * (attention + ffn) + rows * hidden;
  if (estimate > kMaxParameters) {
    throw keys.root().error(fmt::format(
        "these sizes make a model of about {:.2g} parameters; allowed are up to {:.0e}. "
        "Check layers, hidden size, feed-forward size and vocabulary",
        estimate, kMaxParameters));
  }
}

}  // namespace

std::vector<std::string> supported_architectures() {
  std::vector<std::string> names;
  for (const Architecture& entry : kArchitectures) {
    names.emplace_back(entry.name);
  }
  return names;
}

// Models' first revisions have spellings that transformers does not know: they stand for the first
// architecture that is read in the same way and has a type.
SavedKind saved_kind(const Model& model) {
  const Architecture* const entry = find_architecture(model.architecture);
  OFFSTAGE_CHECK(entry != nullptr, "a model of unknown architecture: " + model.architecture);
  const auto* found = std::ranges::find(kModelTypes, model.architecture, &ModelType::architecture);
  if (found == kModelTypes.end()) {
    found = std::ranges::find_if(kModelTypes, [&](const ModelType& type) {
      return find_architecture(type.architecture)->read == entry->read;
    });
  }
  OFFSTAGE_CHECK(found != kModelTypes.end(), "an architecture without a type");
  return {found->architecture, found->type};
}

Model read_hf_config(const platform::Node& node, std::string name) {
  if (!node.is_map()) {
    throw node.error(
        "expected a map of Hugging Face config.json keys such as {\"model_type\": \"gpt2\", ...}");
  }
  const auto [entry, architecture] = choose_architecture(node);
  const HfKeys keys(node, architecture);
  Model model;
  model.name = std::move(name);
  model.architecture = architecture;
  model.family = entry->family;
  entry->read(keys, model);
  if (model.embedding_dim == 0) {
    model.embedding_dim = model.hidden;
  }
  check_heads(keys, model);
  check_experts(keys, model);
  check_total(keys, model);
  return model;
}

Model read_hf_config(const platform::Document& document) {
  // Downloaded models are folders that hold a config.json.
  const auto path = std::filesystem::absolute(document.file());
  const bool generic = path.filename() == "config.json";
  return read_hf_config(document.root(),
                        generic ? path.parent_path().filename().string() : path.stem().string());
}

}  // namespace offstage::workloads
