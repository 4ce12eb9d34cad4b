#include "scheduler/train_config.h"

#include <filesystem>
#include <limits>

#include "platform/error.h"

namespace offstage::scheduler {

using platform::Node;

namespace {

constexpr std::int64_t kMostSteps = 1'000'000'000;
constexpr std::int64_t kMostKept = 1'000'000;
constexpr double kHighestRate = 10.0;
constexpr double kLargestNorm = 1e30;
constexpr double kJustBelowOne = 1.0 - 1e-9;
constexpr double kLongestWatch = 1e6;  // seconds

// A path written in a file is taken from that file's folder.
std::string path_of(const Node& node) {
  const auto folder = std::filesystem::path(node.where().file).parent_path();
  return (folder / node.text()).lexically_normal().string();
}

std::optional<std::string> optional_path(const Node& node, const char* key) {
  const auto found = node.find(key);
  return found ? std::optional(path_of(*found)) : std::nullopt;
}

void optional_number(const Node& node, const char* key, double low, double high, double& value) {
  if (const auto found = node.find(key)) value = found->number(low, high);
}

void optional_integer(const Node& node, const char* key, std::int64_t low, std::int64_t high,
                      std::int64_t& value) {
  if (const auto found = node.find(key)) value = found->integer(low, high);
}

std::vector<std::string> read_data(const Node& node) {
  const std::vector<Node> nodes = node.is_sequence() ? node.items() : std::vector{node};
  if (nodes.empty()) throw node.error("expected a file or a list of files, got an empty list");
  std::vector<std::string> files;
  files.reserve(nodes.size());
  for (const Node& file : nodes) files.push_back(path_of(file));
  return files;
}

TokenType read_token_type(const Node& node) {
  const std::string name = node.choice({"automatic", "bytes", "uint16", "uint32"});
  if (name == "bytes") return TokenType::bytes;
  if (name == "uint16") return TokenType::uint16;
  return name == "uint32" ? TokenType::uint32 : TokenType::automatic;
}

ValidationConfig read_validation(const Node& node) {
  node.allow_keys({"data", "every", "batches"});
  ValidationConfig validation;
  validation.data = read_data(node.at("data"));
  validation.every = node.at("every").integer(1, kMostSteps);
  optional_integer(node, "batches", 1, kMostSteps, validation.batches);
  return validation;
}

LearningRateSchedule read_schedule(const Node& node) {
  using Kind = LearningRateSchedule::Kind;
  node.allow_keys({"kind", "warmup_steps", "final_fraction", "steps"});
  LearningRateSchedule schedule;
  const std::string kind = node.at("kind").choice({"constant", "cosine", "linear"});
  schedule.kind = kind == "cosine"   ? Kind::cosine
                  : kind == "linear" ? Kind::linear
                                     : Kind::constant;
  optional_integer(node, "warmup_steps", 0, kMostSteps, schedule.warmup_steps);
  optional_number(node, "final_fraction", 0.0, 1.0, schedule.final_fraction);
  if (const auto steps = node.find("steps")) schedule.steps = steps->integer(1, kMostSteps);
  return schedule;
}

SaveConfig read_save(const Node& node) {
  node.allow_keys({"directory", "type"});
  SaveConfig save;
  save.directory = path_of(node.at("directory"));
  if (const auto type = node.find("type")) {
    const std::string name = type->choice({"f32", "f16", "bf16"});
    save.type = name == "bf16" ? SavedType::bf16 : name == "f16" ? SavedType::f16 : SavedType::f32;
  }
  return save;
}

CheckpointConfig read_checkpoint(const Node& node) {
  node.allow_keys({"directory", "every", "keep"});
  CheckpointConfig checkpoint;
  checkpoint.directory = path_of(node.at("directory"));
  if (const auto every = node.find("every")) checkpoint.every = every->integer(1, kMostSteps);
  optional_integer(node, "keep", 1, kMostKept, checkpoint.keep);
  return checkpoint;
}

void read_optimizer(const Node& node, TrainConfig& train) {
  optional_number(node, "learning_rate", 0.0, kHighestRate, train.learning_rate);
  if (const auto schedule = node.find("schedule")) train.schedule = read_schedule(*schedule);
  optional_number(node, "beta1", 0.0, kJustBelowOne, train.beta1);
  optional_number(node, "beta2", 0.0, kJustBelowOne, train.beta2);
  optional_number(node, "epsilon", std::numeric_limits<double>::min(), 1.0, train.epsilon);
  optional_number(node, "weight_decay", 0.0, kHighestRate, train.weight_decay);
  if (const auto all = node.find("decay_all")) train.decay_all = all->boolean();
  if (const auto norm = node.find("clip_norm")) {
    train.clip_norm = norm->number(std::numeric_limits<double>::min(), kLargestNorm);
  }
}

}  // namespace

TrainConfig read_train(const Node& node) {
  node.allow_keys({"data",  "token_type",    "order",          "validation",
                   "steps", "learning_rate", "schedule",       "beta1",
                   "beta2", "epsilon",       "weight_decay",   "decay_all",
                   "seed",  "clip_norm",     "nvme_directory", "initialise_from",
                   "save",  "checkpoint",    "watchdog_s",     "peer_timeout_s"});
  TrainConfig train;
  train.data = read_data(node.at("data"));
  if (const auto type = node.find("token_type")) train.token_type = read_token_type(*type);
  if (const auto order = node.find("order")) {
    train.order = order->choice({"random", "sequential"}) == "random" ? SampleOrder::random
                                                                      : SampleOrder::sequential;
  }
  if (const auto validation = node.find("validation")) {
    train.validation = read_validation(*validation);
  }
  train.steps = node.at("steps").integer(1, kMostSteps);
  read_optimizer(node, train);
  if (const auto seed = node.find("seed")) {
    train.seed =
        static_cast<std::uint64_t>(seed->integer(0, std::numeric_limits<std::int64_t>::max()));
  }
  train.nvme_directory = optional_path(node, "nvme_directory");
  train.initialise_from = optional_path(node, "initialise_from");
  if (const auto save = node.find("save")) train.save = read_save(*save);
  if (const auto checkpoint = node.find("checkpoint")) {
    train.checkpoint = read_checkpoint(*checkpoint);
  }
  optional_number(node, "watchdog_s", 1e-3, kLongestWatch, train.watchdog.value);
  optional_number(node, "peer_timeout_s", 1e-3, kLongestWatch, train.peer_timeout.value);
  return train;
}

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

}  // namespace offstage::scheduler
