#include "workloads/workload.h"

#include <utility>

#include <fmt/format.h>

#include "workloads/model_library.h"

namespace offstage::workloads {
namespace {

constexpr std::int64_t kMaxSequence = std::int64_t{1} << 24;
constexpr std::int64_t kMaxBatch = std::int64_t{1} << 24;

void check_model(const platform::Node& node, const Workload& workload) {
  const Model& model = workload.model;
  if (!plannable(model)) {
    throw node.at("model").error(
        fmt::format("{} ({}) is an encoder model: its parameters are counted, but only "
                    "decoder-only models can be planned; choose a causal language model",
                    model.name, model.architecture));
  }
  if (model.positions == Positions::learned && workload.sequence_length > model.max_positions) {
    throw node.at("sequence_length")
        .error(fmt::format("{} is longer than the {} positions that {} has learned; choose at "
                           "most {}",
                           workload.sequence_length, model.max_positions, model.name,
                           model.max_positions));
  }
}

}  // namespace

Workload read_workload(const platform::Node& node, const std::string& models_directory) {
  node.allow_keys({"model", "sequence_length", "global_batch", "precision", "optimizer"});
  Workload workload;
  ModelConfig config = read_model(node.at("model"), models_directory);
  workload.model = std::move(config.model);
  workload.model_config = std::move(config.json);
  workload.sequence_length = node.at("sequence_length").integer(1, kMaxSequence);
  workload.global_batch = node.at("global_batch").integer(1, kMaxBatch);
  const bool bf16 = node.at("precision").choice({"bf16", "f32"}) == "bf16";
  workload.precision = bf16 ? platform::Precision::bf16 : platform::Precision::f32;
  node.at("optimizer").choice({"adamw"});
  check_model(node, workload);
  return workload;
}

}  // namespace offstage::workloads
