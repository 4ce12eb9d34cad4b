#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "exec/run_directory.h"
#include "exec/signal_watch.h"
#include "exec/trainer.h"
#include "exec/watchdog.h"
#include "platform/local_socket.h"
#include "platform/units.h"
#include "scheduler/cost_model.h"
#include "scheduler/plan.h"
#include "scheduler/run_config.h"

// A training as its user meets it: checked before it begins, continued from its checkpoints,
// watched while it runs, steered from outside, ended without loss. The trainer below it knows only
// steps.
namespace offstage::exec {

// A GPU that a training has gone on without.
struct LossOfGpu {
  std::string gpu;
  std::int64_t step = 0;  // steps done by then, in the run that lost it
  std::string error;
};
nlohmann::json to_json(const LossOfGpu& loss);
LossOfGpu loss_from(const nlohmann::json& json);

struct TrainingRequest {
  const scheduler::Plan& plan;
  const scheduler::TrainConfig& config;
  std::string config_text = {}, plan_text = {};  // kept beside each checkpoint
  std::optional<platform::Seconds> predicted_step = {};
  DeviceLayer* devices = nullptr;  // as TrainerOptions::devices
  HostGroup* hosts = nullptr;      // as TrainerOptions::hosts; all but host 0 keep no folder
  bool restart = false;            // sets an earlier run in the folder aside instead of going on
  std::function<std::vector<scheduler::TaskCost>(const scheduler::TaskGraph&)> costs = {};
  std::optional<scheduler::LostGpu> lose = {};  // as TrainerOptions::lose
  std::vector<LossOfGpu> lost = {};             // before this run of what is one training
  std::function<void(const StepReport&, const std::vector<PoolPeak>&)> progress = {};
  std::function<void(const std::string&)> say = {};  // a line for the user. Thread: any
};

struct TrainingOutcome {
  TrainResult result;
  std::int64_t resumed_from = 0;                            // 0: from the beginning
  std::int64_t steps_done = 0;                              // in all
  std::vector<std::pair<std::int64_t, double>> validation;  // step and loss
  bool stopped = false;                    // before the last step, because somebody asked
  std::optional<std::int64_t> checkpoint;  // step of the newest
};

class TrainingRun {
 public:
  // Compares plan and machine, takes the run's folder, reads the newest whole checkpoint.
  // Precondition: block_stop_signals() before the first thread.
  // Errors: those of require_memory, require_disk, RunDirectory, Trainer; Error(bad_input) when the
  // checkpoint is of another training.
  explicit TrainingRun(TrainingRequest request);
  ~TrainingRun();
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  // Trains what is left of the config's steps. Errors: those of tasks; checkpoints stay.
  TrainingOutcome run();
  const Trainer& trainer() const { return *trainer_; }

 private:
  bool keeps_folder() const;
  void prepare_directory();
  void tell_of_loss(const LossOfGpu& loss);
  TrainerOptions trainer_options();
  void on_step(const StepReport& report);
  void on_validation(std::int64_t step, double loss);
  std::string answer(const std::string& command);
  nlohmann::json status() const;
  nlohmann::json checkpoint_now();
  void note(const std::string& line) const;  // to user and log

  const TrainingRequest request_;
  std::unique_ptr<RunDirectory> directory_;  // null without a checkpoint section
  std::optional<Checkpoint> resumed_;
  std::unique_ptr<Trainer> trainer_;
  std::vector<std::pair<std::int64_t, double>> validation_;

  mutable std::mutex mutex_;  // guards last_
  std::optional<StepReport> last_;
};

}  // namespace offstage::exec
