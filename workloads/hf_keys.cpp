#include "workloads/hf_keys.h"

#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace offstage::workloads {

HfKeys::HfKeys(platform::Node root, std::string architecture)
    : root_(std::move(root)), architecture_(std::move(architecture)) {
  if (!root_.is_map()) {
    throw root_.error(
        "expected a map of Hugging Face config.json keys such as {\"model_type\": \"gpt2\", ...}");
  }
}

std::optional<platform::Node> HfKeys::find(Spellings spellings) const {
  for (const char* spelling : spellings) {
    if (auto node = root_.find(spelling)) {
      return node;
    }
  }
  return std::nullopt;
}

Error HfKeys::error(Spellings spellings, const std::string& message) const {
  const auto node = find(spellings);
  return node ? node->error(message) : root_.error(message);
}

std::optional<std::int64_t> HfKeys::find_size(Spellings spellings, std::int64_t high) const {
  std::optional<std::int64_t> result;
  std::string first;
  for (const char* spelling : spellings) {
    const auto node = root_.find(spelling);
    if (!node) {
      continue;
    }
    const std::int64_t value = node->integer(1, high);
    if (result && *result != value) {
      throw node->error(fmt::format("{} = {} contradicts {} = {}; keep one of the two keys",
                                    spelling, value, first, *result));
    }
    if (!result) {
      result = value;
      first = spelling;
    }
  }
  return result;
}

std::int64_t HfKeys::size(Spellings spellings, std::int64_t high) const {
  if (const auto value = find_size(spellings, high)) {
    return *value;
  }
  const std::vector<std::string_view> names(spellings.begin(), spellings.end());
  if (names.size() == 1) {
    throw root_.error(
        fmt::format("the key {} is missing; {} needs it: a whole number between 1 and {}", names[0],
                    architecture_, high));
  }
  throw root_.error(
      fmt::format("the key {} (also spelt {}) is missing; {} needs it: a whole number between 1 "
                  "and {}",
                  names[0], fmt::join(names.begin() + 1, names.end(), ", "), architecture_, high));
}

double HfKeys::number_or(Spellings spellings, double fallback, double low, double high) const {
  const auto node = find(spellings);
  return node ? node->number(low, high) : fallback;
}

bool HfKeys::flag_or(const char* key, bool fallback) const {
  const auto node = root_.find(key);
  return node ? node->boolean() : fallback;
}

Activation HfKeys::activation(Spellings spellings, Activation fallback) const {
  const auto node = find(spellings);
  if (!node) {
    return fallback;
  }
  // transformers' ACT2FN names; the tanh approximations differ in rounding only.
  const std::string name =
      node->choice({"gelu", "gelu_python", "gelu_new", "gelu_fast", "gelu_pytorch_tanh",
                    "gelu_tanh", "relu", "silu", "swish"});
  if (name == "gelu" || name == "gelu_python") {
    return Activation::gelu;
  }
  if (name == "relu") {
    return Activation::relu;
  }
  if (name == "silu" || name == "swish") {
    return Activation::silu;
  }
  return Activation::gelu_tanh;
}

}  // namespace offstage::workloads
