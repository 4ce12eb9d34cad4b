#include "platform/machine_reader.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "platform/hosts.h"
#include "platform/node_reader.h"
#include "platform/virtual_changes.h"
#include "platform/virtual_machine.h"
#include "platform/what_if.h"

namespace offstage::platform {
namespace {

constexpr const char* kHost = "host";
constexpr const char* kExtension = ".yaml";

bool is_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(kExtension) ||
         text.ends_with(".yml") || text.ends_with(".json");
}

// The catalog's file of that name; empty when there is none.
std::optional<std::string> catalog_file(const std::string& name,
                                        const std::string& catalog_directory) {
  const auto names = catalog_names(catalog_directory);
  if (std::find(names.begin(), names.end(), name) == names.end()) return std::nullopt;
  return (std::filesystem::path(catalog_directory) / (name + kExtension)).string();
}

std::string unknown_name(const std::string& name, const std::string& catalog_directory) {
  auto known = catalog_names(catalog_directory);
  known.emplace_back(kHost);
  const auto nearest = nearest_match(name, known);
  return fmt::format("no platform is named '{}'{}; known: {}, or the path of a .yaml file", name,
                     nearest ? fmt::format(", did you mean '{}'?", *nearest) : "",
                     fmt::join(known, ", "));
}

// The file of a platform other than `host`, named in a run config.
std::string find_file(const Node& name, const std::string& catalog_directory) {
  const std::string text = name.text();
  if (!is_path(text)) {
    const auto file = catalog_file(text, catalog_directory);
    if (!file) throw name.error(unknown_name(text, catalog_directory));
    return *file;
  }
  const auto path = std::filesystem::path(name.where().file).parent_path() / text;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw name.error(fmt::format("no such file: {}; check the path", path.string()));
  }
  return path.string();
}

// A machine of the catalog with GPUs of the model that `name` is.
Machine find_model(const Node& name, const std::string& catalog_directory) {
  std::vector<std::string> known;
  for (const std::string& machine : catalog_names(catalog_directory)) {
    const Document document = Document::load(*catalog_file(machine, catalog_directory));
    const auto models = document.root().find("gpu_models");
    for (const Node& model : models ? models->items() : std::vector<Node>{}) {
      known.push_back(model.at("name").text());
      if (known.back() == name.text()) return read_machine(document);
    }
  }
  const auto nearest = nearest_match(name.text(), known);
  throw name.error(fmt::format(
      "no GPU model of the catalog is named '{}'{}; known: {}", name.text(),
      nearest ? fmt::format(", did you mean '{}'?", *nearest) : "", fmt::join(known, ", ")));
}

// The machine of a map that names it and may change it.
Machine read_changed(const Node& map, const std::string& catalog_directory) {
  const Node name = map.at("name");
  if (name.text() == kHost) return find_host(read_host_options(map));
  const Document document = Document::load(find_file(name, catalog_directory));
  const Node root = document.root();
  if (root.at("kind").choice({"node", "virtual"}) == "node") {
    return what_if(map, read_node_machine(root, NodeChanges(map)),
                   [&](const Node& model) { return find_model(model, catalog_directory); });
  }
  return make_machine(changed(map, read_virtual_machine(root)));
}

}  // namespace

std::vector<std::string> catalog_names(const std::string& catalog_directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(catalog_directory, error)) {
    if (entry.path().extension() == kExtension) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Machine read_machine(const Document& document) {
  const Node root = document.root();
  const bool is_virtual = root.at("kind").choice({"node", "virtual"}) == "virtual";
  return is_virtual ? make_machine(read_virtual_machine(root)) : read_node_machine(root);
}

Machine load_machine(const std::string& name_or_path, const std::string& catalog_directory,
                     const HostOptions& host) {
  if (name_or_path == kHost) return find_host(host);
  if (is_path(name_or_path)) {
    const Document document = Document::load(name_or_path);
    const Node root = document.root();
    const bool is_run_config = root.is_map() && root.find("platform");
    return is_run_config ? read_platform(root.at("platform"), catalog_directory)
                         : read_machine(document);
  }
  const auto file = catalog_file(name_or_path, catalog_directory);
  if (!file) throw Error(ErrorCode::bad_input, unknown_name(name_or_path, catalog_directory));
  return read_machine(Document::load(*file));
}

Machine read_platform(const Node& node, const std::string& catalog_directory) {
  if (node.is_map()) {
    Machine machine = read_changed(node, catalog_directory);
    read_hosts(node, machine);
    return machine;
  }
  if (node.text() == kHost) return find_host({});
  return read_machine(Document::load(find_file(node, catalog_directory)));
}

void write_machine(const Machine& machine, const std::string& path) {
  write_virtual_machine(to_virtual(machine), path);
}

}  // namespace offstage::platform
