#include "scheduler/run_config.h"

#include <cstdint>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "platform/document.h"
#include "platform/error.h"
#include "platform/machine_reader.h"
#include "scheduler/plan_file.h"
#include "scheduler/strategy_knobs.h"

namespace offstage::scheduler {

using platform::Document;
using platform::Machine;
using platform::Node;

namespace {

namespace fs = std::filesystem;

bool is_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".yaml") || text.ends_with(".yml");
}

// A path written in a file is taken from that file's folder.
std::string beside(const std::string& file, const std::string& path) {
  return (fs::path(file).parent_path() / path).lexically_normal().string();
}

// What loads the machine again from anywhere: the value of `platform`, paths made absolute.
std::string reference_of(const Node& node) {
  const Node name = node.is_map() ? node.at("name") : node;
  if (!is_path(name.text())) return node.json();
  auto reference = nlohmann::json::parse(node.json());
  const auto path = fs::absolute(beside(name.where().file, name.text())).lexically_normal();
  (node.is_map() ? reference["name"] : reference) = path.string();
  return reference.dump();
}

Machine read_machine_of(const Node& node, const DataDirectories& directories) {
  Machine machine = platform::read_platform(node, directories.catalog);
  machine.reference = reference_of(node);
  return machine;
}

Profile read_profile_of(const Node& node, const DataDirectories& directories) {
  const std::string text = node.text();
  const std::string file = is_path(text) ? beside(node.where().file, text) : text;
  try {
    return load_profile(file, directories.profiles);
  } catch (const Error& error) {
    if (error.where() && error.where()->line) throw;
    throw node.error(error.what());
  }
}

// The one that is named; else that of the software which the strategy is about.
Profile profile_for(const Node& root, const RunConfig& config, const DataDirectories& directories) {
  if (const auto named = root.find("profile")) return read_profile_of(*named, directories);
  if (!config.system) return default_profile_of(config.machine, directories);
  return load_profile(systems::default_profile(config.system->system), directories.profiles);
}

RunConfig from_plan(const Document& document, const DataDirectories& directories) {
  RunConfig config;
  config.machine = read_machine_of(plan_platform(document), directories);
  const Plan plan = read_plan(document, config.machine);
  config.profile = default_profile_of(config.machine, directories);
  config.workload = plan.workload;
  config.strategy = every_knob(plan.strategy);
  return config;
}

RunConfig from_config(const Document& document, const DataDirectories& directories) {
  const Node root = document.root();
  root.allow_keys({"platform", "profile", "workload", "strategy", "train", "disturbances"});
  RunConfig config;
  config.machine = read_machine_of(root.at("platform"), directories);
  const auto strategy = root.find("strategy");
  if (strategy && strategy->is_map() && strategy->find("system")) {
    const auto gpus = static_cast<std::int64_t>(config.machine.gpus.size());
    config.system = systems::read_system_strategy(*strategy, gpus);
  } else if (strategy) {
    config.strategy = read_strategy(*strategy);
  }
  config.profile = profile_for(root, config, directories);
  config.workload = workloads::read_workload(root.at("workload"), directories.models);
  if (const auto disturbances = root.find("disturbances")) {
    config.disturbances = read_disturbances(*disturbances, config.machine);
  }
  if (const auto train = root.find("train")) {
    config.train = read_train(*train);
    try {
      require_clip_norm(*config.train, config.strategy.clipping);
    } catch (const Error& error) {
      throw train->error(error.what());
    }
  }
  return config;
}

}  // namespace

// By name or by a path from the machine file's folder.
Profile default_profile_of(const Machine& machine, const DataDirectories& directories) {
  const std::string& name = machine.default_profile;
  try {
    return load_profile(is_path(name) ? beside(machine.file, name) : name, directories.profiles);
  } catch (const Error& error) {
    if (error.where()) throw;
    throw Error(error.code(), fmt::format("default_profile: {}", error.what()),
                {.file = machine.file, .line = {}, .column = {}});
  }
}

RunConfig load_run_config(const std::string& file, const DataDirectories& directories) {
  return read_run_config(Document::load(file), directories);
}

RunConfig read_run_config(const Document& document, const DataDirectories& directories) {
  RunConfig config = is_plan_document(document) ? from_plan(document, directories)
                                                : from_config(document, directories);
  config.file = document.file();
  return config;
}

}  // namespace offstage::scheduler
