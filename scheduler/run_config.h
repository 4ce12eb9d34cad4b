#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platform/machine.h"
#include "scheduler/profile.h"
#include "scheduler/strategy.h"
#include "workloads/workload.h"

// One file for everything: platform, workload, strategy and what only `train` reads. Parsed once;
// nothing is silently ignored.
namespace offstage::scheduler {

// Where the program's own data lies: platform/catalog, workloads/models, calibration/profiles.
struct DataDirectories {
  std::string catalog, models, profiles;
};

struct TrainConfig {
  std::vector<std::string> data;  // raw bytes, or uint16 tokens when the name ends in .bin
  std::int64_t steps = 0;
  double learning_rate = 3e-4;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.0;
  std::uint64_t seed = 0;
  // Gradients are scaled down so that their norm is at most this: exactly when clipping is exact.
  std::optional<double> clip_norm;
  // Where the state of sub-models on NVMe goes, when the plan has any.
  std::optional<std::string> nvme_directory;
};

// Errors: Error(bad_input) when clip_norm is missing with exact clipping, or given without.
void require_clip_norm(const TrainConfig& train, Clipping clipping);

struct RunConfig {
  std::string file;
  platform::Machine machine;
  Profile profile;
  workloads::Workload workload;
  StrategyRequest strategy;
  std::optional<TrainConfig> train;
};

// Reads a run config, or a plan file's platform and workload together with the plan's strategy,
// every knob fixed. Relative paths in the file are taken from the file's folder. `platform: host`
// may be a map: {name: host, virtual_gpus: 2, gpu_memory_bytes: 64MiB, ...}. Errors:
// Error(bad_input) with file, line, column, what is allowed, the nearest match.
RunConfig load_run_config(const std::string& file, const DataDirectories& directories);

}  // namespace offstage::scheduler
