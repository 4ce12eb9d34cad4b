#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "workloads/layer_table.h"
#include "workloads/model.h"

// A model's layer table for people and for programs: what `offstage workload FILE` prints. Encoder
// models get their parameter count and the reason why there is no table.
namespace offstage::workloads {

// One sequence in bf16, as long as the model has positions for, 2048 at most.
Batch usual_batch(const Model& model);

// Errors: as make_layer_table.
std::string describe_model(const Model& model, const Batch& batch);

// Keys: model, architecture, plannable, parameters, active_parameters, flops_per_token,
// micro_batch, sequence_length, precision, layers[{index, kind, class, parameters,
// forward_flops, backward_flops, output_bytes, kept_bytes}], classes[{name, kind, layers,
// tensors[], forward[], backward[], memory{}}]. An encoder model has only the first four, and no
// layers.
nlohmann::json model_to_json(const Model& model, const Batch& batch);

}  // namespace offstage::workloads
