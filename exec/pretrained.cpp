#include "exec/pretrained.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "platform/document.h"
#include "platform/error.h"
#include "workloads/checkpoint_names.h"
#include "workloads/hf_config.h"

namespace offstage::exec {
namespace {

namespace fs = std::filesystem;
using workloads::Family;
using workloads::LayerTable;
using workloads::Model;
using workloads::ParameterTensor;

constexpr const char* kHead = "lm_head.weight";
constexpr std::size_t kMostNamed = 10;  // tensors in one message
constexpr std::int64_t kCompared = std::int64_t{1} << 16;

// Constants that old versions of transformers saved as if they were weights.
bool is_constant(const Model& model, const std::string& name) {
  if (model.family == Family::gpt2) {
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
  }
  return name.ends_with("rotary_emb.inv_freq");
}

// The config.json of a checkpoint as a Model. That of a bare model names an architecture
// (GPT2Model) that can't be trained: model_type then says what it is.
Model model_beside(const fs::path& config) {
  const auto document = platform::Document::load(config.string());
  auto keys = nlohmann::json::parse(document.root().json());
  if (!keys.contains("model_type")) return workloads::read_hf_config(document);
  keys.erase("architectures");
  const auto named = platform::Document::parse(config.string(), keys.dump(), true);
  return workloads::read_hf_config(named.root(), config.parent_path().filename().string());
}

// What tensors of the right shapes do not show. Empty when `stored` computes what `wanted` does.
std::vector<std::string> differences(const Model& stored, const Model& wanted,
                                     std::int64_t sequence_length) {
  std::vector<std::string> found;
  const auto compare = [&found](const char* what, auto a, auto b) {
    if (a != b) found.push_back(fmt::format("{} {} instead of {}", what, a, b));
  };
  if (stored.family != wanted.family || stored.gated != wanted.gated) {
    found.push_back(fmt::format("{} instead of {}", stored.architecture, wanted.architecture));
    return found;
  }
  compare("layers", stored.layers, wanted.layers);
  compare("heads", stored.heads, wanted.heads);
  compare("key-value heads", stored.kv_heads, wanted.kv_heads);
  compare("dimensions of a head", stored.head_dim, wanted.head_dim);
  compare("norm epsilon", stored.norm_epsilon, wanted.norm_epsilon);
  compare("rotary base", stored.rope_theta, wanted.rope_theta);
  compare("stretched rotary frequencies", stored.rope_scaled, wanted.rope_scaled);
  compare("tied embeddings", stored.tied_embeddings, wanted.tied_embeddings);
  compare("plain scale of attention", stored.plain_attention_scale, wanted.plain_attention_scale);
  const auto window = [sequence_length](const Model& model) {
    const bool cuts = model.sliding_window > 0 && model.sliding_window < sequence_length;
    return cuts ? model.sliding_window : sequence_length;
  };
  compare("tokens attended to", window(stored), window(wanted));
  if (stored.activation != wanted.activation) found.emplace_back("another activation");
  return found;
}

// Without a config.json there is nothing to compare.
void require_same_arithmetic(const std::string& path, const LayerTable& table) {
  std::error_code ignored;
  const fs::path folder =
      fs::is_directory(path, ignored) ? fs::path(path) : fs::path(path).parent_path();
  const fs::path config = folder / "config.json";
  if (!fs::exists(config, ignored)) return;
  const auto found = differences(model_beside(config), table.model, table.batch.sequence_length);
  if (found.empty()) return;
  throw Error(ErrorCode::bad_input,
              fmt::format("{}: these weights belong to another model than workload.model: {}; name "
                          "this file as workload.model",
                          config.string(), fmt::join(found, ", ")));
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace

PretrainedWeights::PretrainedWeights(const std::string& path, const LayerTable& table)
    : path_(path), reader_(path), table_(table) {
  require_same_arithmetic(path, table);
  const std::string prefix = workloads::optional_prefix(table.model);
  const std::string first = workloads::checkpoint_names(table, 0).front();
  const bool bare = !reader_.contains(first) && reader_.contains(first.substr(prefix.size()));
  std::vector<std::string> used;
  for (std::size_t layer = 0; layer < table.layers.size(); ++layer) {
    tensors_.push_back(find_tensors(layer, bare, used));
  }
  if (table.model.tied_embeddings && reader_.contains(kHead)) {
    require_tied(reader_.at(kHead));
    used.emplace_back(kHead);
  }
  require_nothing_else(std::move(used));
}

std::vector<const StoredTensor*> PretrainedWeights::find_tensors(
    std::size_t layer, bool bare, std::vector<std::string>& used) const {
  const std::string prefix = workloads::optional_prefix(table_.model);
  std::vector<const StoredTensor*> found;
  std::size_t index = 0;
  for (std::string name : workloads::checkpoint_names(table_, layer)) {
    if (bare && name.starts_with(prefix)) name.erase(0, prefix.size());
    const StoredTensor& stored = reader_.at(name);
    const ParameterTensor& wanted = table_.layer(layer).parameters[index++];
    if (stored.shape != wanted.shape) {
      throw Error(ErrorCode::bad_input,
                  fmt::format("{}: '{}' is {}, workload.model makes it {}", path_, name,
                              shape_text(stored.shape), shape_text(wanted.shape)));
    }
    found.push_back(&stored);
    used.push_back(std::move(name));
  }
  return found;
}

// transformers ties a head whatever the file says, so that a matrix of its own would be lost.
void PretrainedWeights::require_tied(const StoredTensor& head) const {
  const StoredTensor& embedding = *tensors_.front().front();
  bool same = head.shape == embedding.shape;
  std::vector<float> a(static_cast<std::size_t>(kCompared)), b(a.size());
  for (std::int64_t first = 0; same && first < head.elements(); first += kCompared) {
    const auto count = static_cast<std::size_t>(std::min(kCompared, head.elements() - first));
    reader_.read(head, first, std::span(a).first(count));
    reader_.read(embedding, first, std::span(b).first(count));
    same = std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(count), b.begin());
  }
  if (!same) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: '{}' is not the matrix of the embedding, to which workload.model "
                            "ties it; set tie_word_embeddings to false",
                            path_, head.name));
  }
}

void PretrainedWeights::require_nothing_else(std::vector<std::string> used) const {
  std::ranges::sort(used);
  std::vector<std::string> others;
  for (const std::string& name : reader_.names()) {
    if (!std::ranges::binary_search(used, name) && !is_constant(table_.model, name)) {
      others.push_back(name);
    }
  }
  if (others.empty()) return;
  const std::size_t count = others.size();
  if (count > kMostNamed) others.resize(kMostNamed);
  throw Error(ErrorCode::bad_input,
              fmt::format("{}: workload.model has no place for {} of its tensors: {}{}", path_,
                          count, fmt::join(others, ", "), count > kMostNamed ? ", ..." : ""));
}

void PretrainedWeights::read(std::size_t layer, std::int64_t first, std::span<float> out) const {
  const std::int64_t last = first + static_cast<std::int64_t>(out.size());
  std::int64_t begin = 0;
  for (const StoredTensor* tensor : tensors_[layer]) {
    const std::int64_t end = begin + tensor->elements();
    const std::int64_t from = std::max(begin, first), to = std::min(end, last);
    if (from < to) {
      const auto part =
          out.subspan(static_cast<std::size_t>(from - first), static_cast<std::size_t>(to - from));
      reader_.read(*tensor, from - begin, part);
      const auto bad = std::ranges::find_if(part, [](float x) { return !std::isfinite(x); });
      if (bad != part.end()) {
        throw Error(
            ErrorCode::bad_input,
            fmt::format("{}: element {} of '{}' is {}: no finite weight", path_,
                        from - begin + std::distance(part.begin(), bad), tensor->name, *bad));
      }
    }
    begin = end;
  }
}

WeightSource PretrainedWeights::source() const {
  return [this](std::size_t layer, std::int64_t first, std::span<float> out) {
    read(layer, first, out);
  };
}

}  // namespace offstage::exec
