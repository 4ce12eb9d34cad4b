#include "exec/training_identity.h"

#include <filesystem>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::exec {

nlohmann::json training_identity(const scheduler::Plan& plan,
                                 const scheduler::TrainConfig& config) {
  nlohmann::json data = nlohmann::json::array();
  for (const std::string& file : config.data) {
    const std::filesystem::path path(file);
    std::error_code missing;  // the trainer complains
    data.push_back(
        {{"file", path.filename().string()}, {"bytes", std::filesystem::file_size(path, missing)}});
  }
  const workloads::Workload& workload = plan.workload;
  return {{"model", workload.model_config},
          {"sequence_length", workload.sequence_length},
          {"global_batch", workload.global_batch},
          {"precision", workload.precision == platform::Precision::f32 ? "f32" : "bf16"},
          {"moments", to_string(plan.strategy.moments)},
          {"data", std::move(data)},
          {"order", config.order == scheduler::SampleOrder::random ? "random" : "sequential"},
          {"seed", config.seed}};
}

void require_same_training(const nlohmann::json& had, const nlohmann::json& asked,
                           const std::string& checkpoint) {
  for (const auto& [key, value] : asked.items()) {
    const nlohmann::json before = had.value(key, nlohmann::json());
    if (before != value) {
      throw Error(
          ErrorCode::bad_input,
          fmt::format("{} is of another training: its {} is {}, the config's {}. Go on with "
                      "what it had, begin again with --restart, or choose another "
                      "train.checkpoint.directory",
                      checkpoint, key, before.dump(), value.dump()));
    }
  }
}

}  // namespace offstage::exec
