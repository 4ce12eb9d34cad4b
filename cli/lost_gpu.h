#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "cli/planning.h"
#include "scheduler/lost_gpu.h"

// A run whose GPU dies in some step (`disturbances: {lost_gpu: {gpu: gpu3, step: 40}}`): the plan
// for the others, and what the loss costs.
namespace offstage::cli {

struct LostGpuCost {
  std::string gpu;
  std::int64_t step = 0;                   // in which it dies: done, but lost
  std::optional<std::int64_t> checkpoint;  // step of the newest one; absent: the run ends
  platform::Seconds before, after;         // of a step
  scheduler::Plan plan;                    // of the GPUs left
  std::optional<std::int64_t> steps;       // of the whole run
  std::int64_t global_batch = 0;

  // Steps done and lost.
  std::int64_t steps_lost() const { return step - checkpoint.value_or(0); }
  // Of the whole run, without the time to start again and to read the checkpoint. Precondition:
  // steps, checkpoint.
  platform::Seconds whole_run() const;
  platform::Seconds undisturbed() const;
};

// Plans and simulates what is left. `before`: a step's time with all GPUs.
// Errors: as answer() and require_fit() for the GPUs that are left.
LostGpuCost cost_of_lost_gpu(const Question& question, platform::Seconds before,
                             const scheduler::DataDirectories& directories, std::uint32_t steps);

// gpu, step, step_s_before, step_s_after, steps_per_s_before, steps_per_s_after,
// tokens_per_s_after, plan_hash_after, shares_after[], checkpoint, steps_lost, time_lost_s, run_s,
// run_s_undisturbed: the last three where the run's steps and checkpoints are known.
nlohmann::json lost_gpu_json(const LostGpuCost& cost);
std::string describe_lost_gpu(const LostGpuCost& cost);

}  // namespace offstage::cli
