#pragma once

#include <cstdint>
#include <string>

#include "platform/document.h"
#include "platform/machine.h"
#include "workloads/model.h"

// What is to be trained: a model, the tokens of one optimizer step, and the arithmetic. Read from
// the `workload` section of a run config or of a plan.
namespace offstage::workloads {

enum class Optimizer { adamw };

struct Workload {
  Model model;
  std::string model_config;  // the Hugging Face keys as JSON text, so that a plan file carries them
  std::int64_t sequence_length = 0;  // tokens
  std::int64_t global_batch = 0;     // sequences in one optimizer step, over all GPUs
  platform::Precision precision = platform::Precision::bf16;
  Optimizer optimizer = Optimizer::adamw;

  std::int64_t tokens_per_step() const { return sequence_length * global_batch; }
};

// `models_directory` holds the named models; a relative path is taken from the config's folder.
// Errors: Error(bad_input) with the place, what is allowed and the nearest match.
Workload read_workload(const platform::Node& node, const std::string& models_directory);

}  // namespace offstage::workloads
