#include "scheduler/run_config.h"

#include <filesystem>
#include <limits>

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

constexpr std::int64_t kMostSteps = 1'000'000'000;
constexpr double kHighestRate = 10.0;
constexpr double kLargestNorm = 1e30;
constexpr double kJustBelowOne = 1.0 - 1e-9;

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

// A machine file names its profile, by name or by a path from its own folder.
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

std::vector<std::string> read_data(const Node& node) {
  const std::vector<Node> nodes = node.is_sequence() ? node.items() : std::vector{node};
  if (nodes.empty()) throw node.error("expected a file or a list of files, got an empty list");
  std::vector<std::string> files;
  files.reserve(nodes.size());
  for (const Node& file : nodes) files.push_back(beside(file.where().file, file.text()));
  return files;
}

TrainConfig read_train(const Node& node) {
  node.allow_keys({"data", "steps", "learning_rate", "beta1", "beta2", "epsilon", "weight_decay",
                   "seed", "clip_norm", "nvme_directory"});
  TrainConfig train;
  train.data = read_data(node.at("data"));
  train.steps = node.at("steps").integer(1, kMostSteps);
  const auto optional_number = [&](const char* key, double low, double high, double& value) {
    if (const auto found = node.find(key)) value = found->number(low, high);
  };
  optional_number("learning_rate", 0.0, kHighestRate, train.learning_rate);
  optional_number("beta1", 0.0, kJustBelowOne, train.beta1);
  optional_number("beta2", 0.0, kJustBelowOne, train.beta2);
  optional_number("epsilon", std::numeric_limits<double>::min(), 1.0, train.epsilon);
  optional_number("weight_decay", 0.0, kHighestRate, train.weight_decay);
  if (const auto seed = node.find("seed")) {
    train.seed =
        static_cast<std::uint64_t>(seed->integer(0, std::numeric_limits<std::int64_t>::max()));
  }
  if (const auto norm = node.find("clip_norm")) {
    train.clip_norm = norm->number(std::numeric_limits<double>::min(), kLargestNorm);
  }
  if (const auto directory = node.find("nvme_directory")) {
    train.nvme_directory = beside(directory->where().file, directory->text());
  }
  return train;
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
  root.allow_keys({"platform", "profile", "workload", "strategy", "train"});
  RunConfig config;
  config.machine = read_machine_of(root.at("platform"), directories);
  const auto profile = root.find("profile");
  config.profile = profile ? read_profile_of(*profile, directories)
                           : default_profile_of(config.machine, directories);
  config.workload = workloads::read_workload(root.at("workload"), directories.models);
  if (const auto strategy = root.find("strategy")) config.strategy = read_strategy(*strategy);
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

void require_clip_norm(const TrainConfig& train, Clipping clipping) {
  if (train.clip_norm && clipping == Clipping::none) {
    throw Error(ErrorCode::bad_input,
                "train.clip_norm needs strategy.clipping: exact (which costs host memory and the "
                "overlap of updates with backward)");
  }
  if (!train.clip_norm && clipping == Clipping::exact) {
    throw Error(ErrorCode::bad_input,
                "strategy.clipping: exact needs train.clip_norm, the largest norm, such as 1.0");
  }
}

RunConfig load_run_config(const std::string& file, const DataDirectories& directories) {
  const Document document = Document::load(file);
  RunConfig config = is_plan_document(document) ? from_plan(document, directories)
                                                : from_config(document, directories);
  config.file = file;
  return config;
}

}  // namespace offstage::scheduler
