#pragma once

#include <nlohmann/json.hpp>

#include "scheduler/plan.h"
#include "scheduler/train_config.h"

// What makes two runs parts of one training: model, batch, data, seed. Everything else (the plan,
// the learning rate) may change at a checkpoint.
namespace offstage::exec {

nlohmann::json training_identity(const scheduler::Plan& plan, const scheduler::TrainConfig& config);

// Errors: Error(bad_input) naming `checkpoint`, the first key that differs, and both values.
void require_same_training(const nlohmann::json& had, const nlohmann::json& asked,
                           const std::string& checkpoint);

}  // namespace offstage::exec
