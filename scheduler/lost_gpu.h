#pragma once

#include <string>

#include "scheduler/run_config.h"

// What is left of a run whose GPU is lost: the machine without it, and what was asked of the
// planner as far as it makes sense there.
namespace offstage::scheduler {

// `config` for the machine without that GPU. Shares that were listed are the planner's again, and
// so is a tensor split that does not come out even; disturbances of the others stay. Virtual GPUs
// are all alike: the last ones move up by one. Errors: Error(bad_input) when it was the only GPU,
// or the machine has none of that name.
RunConfig without_gpu(const RunConfig& config, const std::string& gpu,
                      const DataDirectories& directories);

}  // namespace offstage::scheduler
