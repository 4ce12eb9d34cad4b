#include "workloads/scaled_model.h"

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "platform/document.h"
#include "platform/error.h"
#include "workloads/model_library.h"

namespace offstage::workloads {
namespace {

using nlohmann::json;

// NVIDIA, Deep Learning Performance Guide, "Matrix Multiplication Background": tensor cores are
// used best when sizes are multiples of 128 bytes, and tiles are 128 wide.
constexpr std::int64_t kTile = 128;

// Every spelling that the readers of hf_*.cpp know. A key that a family does not read is harmless.
using Spellings = std::initializer_list<const char*>;
constexpr Spellings kLayers{"n_layer", "n_layers", "num_hidden_layers"};
constexpr Spellings kHidden{"n_embd", "n_embed", "d_model", "hidden_size"};
constexpr Spellings kHeads{"n_head", "n_heads", "num_attention_heads"};
constexpr Spellings kKvHeads{"num_key_value_heads", "num_kv_heads", "n_head_kv", "kv_n_heads"};
constexpr Spellings kFfn{
    "n_inner",         "intermediate_size",     "ffn_dim",
    "ffn_hidden_size", "moe_intermediate_size", "shared_expert_intermediate_size"};

// Of those present; null means "the default", which follows from the other sizes.
template <typename Change>
void change_keys(json& config, Spellings spellings, const Change& change) {
  for (const char* key : spellings) {
    const auto found = config.find(key);
    if (found != config.end() && found->is_number_integer()) *found = change(*found);
  }
}

void set_layers(json& config, std::int64_t layers) {
  change_keys(config, kLayers, [&](std::int64_t) { return layers; });
  change_keys(config, {"first_k_dense_replace"},
              [&](std::int64_t dense) { return std::min(dense, layers); });
}

Workload read_again(const Workload& base, json config, const std::string& name) {
  config["_name_or_path"] = name;
  const auto document = platform::Document::parse(name, config.dump(), true);
  ModelConfig read = read_model(document.root(), "");
  Workload scaled = base;
  scaled.model = std::move(read.model);
  scaled.model_config = std::move(read.json);
  return scaled;
}

}  // namespace

Workload with_layers(const Workload& base, std::int64_t layers) {
  json config = json::parse(base.model_config);
  set_layers(config, layers);
  Workload deeper =
      read_again(base, std::move(config), fmt::format("{}, {} layers", base.model.name, layers));
  OFFSTAGE_CHECK(deeper.model.layers == layers,
                 "a spelling of layers is missing: " + base.model.architecture);
  return deeper;
}

std::int64_t width_step(const Model& model) {
  // Heads and their groups stay whole numbers: hidden / (heads or groups) is the least piece. Where
  // all heads share one key and value, that stays one.
  const std::int64_t pieces =
      model.kv_heads > 1 ? std::gcd(model.kv_heads, model.heads) : model.heads;
  return std::lcm(model.hidden / std::gcd(model.hidden, pieces), kTile);
}

Workload with_width(const Workload& base, std::int64_t hidden) {
  const Model& model = base.model;
  OFFSTAGE_CHECK(hidden > 0 && hidden % width_step(model) == 0,
                 fmt::format("width {} is no multiple of {}", hidden, width_step(model)));
  // size x hidden / the model's hidden, to the nearest multiple of `step`.
  const auto in_proportion = [&](std::int64_t size, std::int64_t step) {
    const std::int64_t unit = model.hidden * step;
    return std::max<std::int64_t>(1, (size * hidden + unit / 2) / unit) * step;
  };
  json config = json::parse(base.model_config);
  const std::int64_t layers = in_proportion(model.layers, 1);
  set_layers(config, layers);
  change_keys(config, kHidden, [&](std::int64_t) { return hidden; });
  // Narrower than the model in opt-350m, where words are projected.
  change_keys(config, {"word_embed_proj_dim"},
              [&](std::int64_t size) { return in_proportion(size, kTile); });
  change_keys(config, kHeads, [&](std::int64_t heads) { return in_proportion(heads, 1); });
  const auto scale_groups = [&](std::int64_t groups) {
    return groups == 1 ? groups : in_proportion(groups, 1);
  };
  change_keys(config, kKvHeads, scale_groups);
  if (const auto attention = config.find("attn_config"); attention != config.end()) {
    change_keys(*attention, kKvHeads, scale_groups);
  }
  change_keys(config, kFfn, [&](std::int64_t size) { return in_proportion(size, kTile); });
  Workload wider = read_again(base, std::move(config),
                              fmt::format("{}, {} wide, {} layers", model.name, hidden, layers));
  OFFSTAGE_CHECK(wider.model.hidden == hidden && wider.model.layers == layers,
                 "a spelling of a size is missing: " + model.architecture);
  return wider;
}

}  // namespace offstage::workloads
