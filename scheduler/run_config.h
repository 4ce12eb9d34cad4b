#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platform/document.h"
#include "platform/machine.h"
#include "scheduler/disturbances.h"
#include "scheduler/profile.h"
#include "scheduler/strategy.h"
#include "scheduler/systems/system_strategy.h"
#include "scheduler/train_config.h"
#include "workloads/workload.h"

// One file for everything: platform, workload, strategy and what only `train` reads. Parsed once;
// nothing is silently ignored.
namespace offstage::scheduler {

// Where the program's own data lies: platform/catalog, workloads/models, calibration/profiles.
struct DataDirectories {
  std::string catalog, models, profiles;
};

struct RunConfig {
  std::string file;
  platform::Machine machine;
  Profile profile;
  workloads::Workload workload;
  StrategyRequest strategy;
  // Instead of our own method, `strategy: {system: ...}`.
  std::optional<systems::SystemStrategy> system;
  std::optional<TrainConfig> train;
  Disturbances disturbances;
};

// Reads a run config, or a plan file's platform and workload together with the plan's strategy,
// every knob fixed. Relative paths in the file are taken from the file's folder. `platform: host`
// may be a map: {name: host, virtual_gpus: 2, gpu_memory_bytes: 64MiB, ...}. Errors:
// Error(bad_input) with file, line, column, what is allowed, the nearest match.
RunConfig load_run_config(const std::string& file, const DataDirectories& directories);
// The same of a document made from several files: each value's relative paths are taken from the
// folder of the file that it was written in.
RunConfig read_run_config(const platform::Document& document, const DataDirectories& directories);

// The profile that the machine's file names, for our own method. Errors: as load_profile.
Profile default_profile_of(const platform::Machine& machine, const DataDirectories& directories);

}  // namespace offstage::scheduler
