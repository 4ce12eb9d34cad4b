#pragma once

#include <nlohmann/json.hpp>

#include "exec/host_group.h"
#include "scheduler/plan.h"
#include "scheduler/train_config.h"

// What makes two runs parts of one training: model, batch, data, seed. Everything else (the plan,
// the learning rate) may change at a checkpoint.
namespace offstage::exec {

nlohmann::json training_identity(const scheduler::Plan& plan, const scheduler::TrainConfig& config);

// Errors: Error(bad_input) naming `checkpoint`, the first key that differs, and both values.
void require_same_training(const nlohmann::json& had, const nlohmann::json& asked,
                           const std::string& checkpoint);

// All that must be the same on all hosts that train together: that, the plan, and what else changes
// a step's bits or the number of steps.
nlohmann::json run_identity(const scheduler::Plan& plan, const scheduler::TrainConfig& config);

// Errors: Error(bad_input) on every host, naming the first key that differs, the hosts, and both
// values.
void require_same_run(HostGroup& hosts, const nlohmann::json& mine);

}  // namespace offstage::exec
