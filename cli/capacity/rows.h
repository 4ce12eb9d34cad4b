#pragma once

#include <string>
#include <vector>

#include "scheduler/capacity.h"
#include "workloads/workload.h"

// The rows of models along which `offstage capacity` looks for the largest.
namespace offstage::cli {

// Layers beyond which the depth row does not go.
// Source: the deepest published transformer, DeepNet (Wang et al. 2022, arXiv 2203.00555).
constexpr std::int64_t kDeepest = 1000;

struct NamedRow {
  std::string name;    // "GPT-3", or kDepthRow, kShapeRow
  std::string source;  // of the shapes
  scheduler::ModelRow row;
  std::string left_out;  // rungs that can't be trained at this sequence length, and why
};

constexpr const char* kDepthRow = "depth";  // the model's width, ever more layers
constexpr const char* kShapeRow = "shape";  // ever wider, layers in proportion

// The published ladders, then depth and shape of the model of `workload`. Every model has the
// sequence length, batch and precision of `workload`.
// Errors: as load_model.
std::vector<NamedRow> capacity_rows(const workloads::Workload& workload,
                                    const std::string& models_directory);

}  // namespace offstage::cli
