#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "exec/trainer.h"
#include "exec/training_run.h"
#include "platform/units.h"
#include "scheduler/plan.h"

// What `train` shows: a line while it goes on, a summary at its end.
namespace offstage::exec {

// One line on stderr that is written over, on a terminal only.
class ProgressLine {
 public:
  ProgressLine(const scheduler::Plan& plan, std::int64_t steps,
               std::optional<platform::Seconds> predicted);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const StepReport& report, const std::vector<PoolPeak>& memory);

 private:
  const double tokens_per_step_;
  const std::int64_t steps_;
  const std::optional<platform::Seconds> predicted_;
  const bool shown_;
  bool written_ = false;
};

struct TrainingSummary {
  const TrainingOutcome& outcome;
  std::string plan_hash;
  double tokens_per_step = 0.0;
  double unigram_entropy = 0.0;  // nats a token
  std::optional<platform::Seconds> predicted_step;
  std::optional<std::string> checkpoint_directory;
  std::vector<LossOfGpu> lost = {};
};
nlohmann::json summary_json(const TrainingSummary& summary);
// Both print to stdout.
void print_json(const TrainingSummary& summary);
void print_text(const TrainingSummary& summary);

}  // namespace offstage::exec
