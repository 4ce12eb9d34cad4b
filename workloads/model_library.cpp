#include "workloads/model_library.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "platform/error.h"
#include "workloads/hf_config.h"

namespace offstage::workloads {
namespace {

constexpr const char* kExtension = ".json";
constexpr const char* kNameKey = "_name_or_path";  // transformers' own key

bool is_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(kExtension);
}

ModelConfig with_json(Model model, const platform::Node& node) {
  auto config = nlohmann::json::parse(node.json());
  config[kNameKey] = model.name;
  return {std::move(model), config.dump()};
}

// A folder stands for the config.json in it.
ModelConfig load_file(const std::filesystem::path& path) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(path, error);
  const auto document = platform::Document::load((folder ? path / "config.json" : path).string());
  return with_json(read_hf_config(document), document.root());
}

std::optional<std::filesystem::path> find_named(const std::string& name,
                                                const std::string& models_directory) {
  const auto names = model_names(models_directory);
  if (std::ranges::find(names, name) == names.end()) {
    return std::nullopt;
  }
  return std::filesystem::path(models_directory) / (name + kExtension);
}

std::string unknown_name(const std::string& name, const std::string& models_directory) {
  const auto known = model_names(models_directory);
  const auto nearest = nearest_match(name, known);
  return fmt::format(
      "no model is named '{}'{}; known: {}, or the path of a Hugging Face config.json", name,
      nearest ? fmt::format(", did you mean '{}'?", *nearest) : "", fmt::join(known, ", "));
}

}  // namespace

std::vector<std::string> model_names(const std::string& models_directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(models_directory, error)) {
    if (entry.path().extension() == kExtension) {
      names.push_back(entry.path().stem().string());
    }
  }
  std::ranges::sort(names);
  return names;
}

ModelConfig load_model(const std::string& name_or_path, const std::string& models_directory) {
  if (is_path(name_or_path)) {
    return load_file(name_or_path);
  }
  const auto file = find_named(name_or_path, models_directory);
  if (!file) {
    throw Error(ErrorCode::bad_input, unknown_name(name_or_path, models_directory));
  }
  return load_file(*file);
}

ModelConfig read_model(const platform::Node& node, const std::string& models_directory) {
  if (node.is_map()) {
    const auto name = node.find(kNameKey);
    Model model = read_hf_config(node, name ? name->text() : std::string());
    if (model.name.empty()) {
      model.name = model.architecture;
    }
    return with_json(std::move(model), node);
  }
  const std::string text = node.text();
  if (!is_path(text)) {
    const auto file = find_named(text, models_directory);
    if (!file) {
      throw node.error(unknown_name(text, models_directory));
    }
    return load_file(*file);
  }
  const auto path = std::filesystem::path(node.where().file).parent_path() / text;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw node.error(
        fmt::format("no such file: {}; paths start at the folder of the file they are written in",
                    path.string()));
  }
  return load_file(path);
}

}  // namespace offstage::workloads
