#include "exec/training_identity.h"

#include <filesystem>

#include <fmt/format.h>

#include "platform/error.h"
#include "scheduler/plan_file.h"

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

nlohmann::json run_identity(const scheduler::Plan& plan, const scheduler::TrainConfig& config) {
  nlohmann::json all = training_identity(plan, config);
  all["plan_hash"] = scheduler::plan_hash(plan);
  all["steps"] = config.steps;
  const scheduler::LearningRateSchedule& schedule = config.schedule;
  all["learning_rate"] = {config.learning_rate, static_cast<int>(schedule.kind),
                          schedule.warmup_steps, schedule.final_fraction,
                          schedule.steps.value_or(0)};
  all["adamw"] = {config.beta1, config.beta2, config.epsilon, config.weight_decay,
                  config.decay_all};
  all["clip_norm"] = config.clip_norm.value_or(0.0);
  if (config.validation) {
    all["validation"] = {config.validation->data.size(), config.validation->every,
                         config.validation->batches};
  }
  return all;
}

void require_same_run(HostGroup& hosts, const nlohmann::json& mine) {
  const auto all = hosts.gather(mine.dump());
  const auto first = nlohmann::json::parse(all[0]);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const auto other = nlohmann::json::parse(all[rank]);
    for (const auto& change : nlohmann::json::diff(first, other)) {
      const std::string path = change.at("path");
      const std::string key = path.substr(1, path.find('/', 1) - 1);
      throw Error(
          ErrorCode::bad_input,
          fmt::format("the hosts' trainings differ: {} is {} on host 0 and {} on host {}. Give all "
                      "the same config and data, and the same plan: one that `offstage plan "
                      "--out` wrote, with --plan",
                      key, first.value(key, nlohmann::json()).dump(),
                      other.value(key, nlohmann::json()).dump(), rank));
    }
  }
}

}  // namespace offstage::exec
