#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/trainer.h"
#include "scheduler/plan.h"
#include "scheduler/run_config.h"
#include "scheduler/strategy.h"
#include "tests/exec/small_models.h"
#include "workloads/workload.h"

// Small trainings for tests: the models of small_models.h on bytes, and text to train them on.
namespace offstage::exec::testing {

// With a vocabulary of bytes.
workloads::Model byte_model(workloads::Model model);
workloads::Model untied(workloads::Model model);

// Sequences of 12 tokens.
workloads::Workload workload(const workloads::Model& model, std::int64_t global_batch,
                             platform::Precision precision = platform::Precision::f32);

// The default strategy with some knobs turned.
template <typename Change>
scheduler::Strategy strategy(Change&& change) {
  scheduler::Strategy strategy;
  change(strategy);
  return strategy;
}

// A text file that lasts as long as the object: English words in a fixed pseudo-random order.
class TextFile {
 public:
  explicit TextFile(std::int64_t words);
  ~TextFile();
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

scheduler::TrainConfig train_config(const TextFile& text);

// What must not depend on how a plan places its bytes.
struct Outcome {
  std::vector<double> losses;
  std::vector<float> weights;
  std::vector<PoolPeak> memory;  // but for this
};
Outcome run(const scheduler::Plan& plan, const scheduler::TrainConfig& config, std::int64_t steps,
            TrainerOptions options = {});

// Elements that are not the same number; all when there are not equally many.
std::size_t differing(const std::vector<float>& a, const std::vector<float>& b);

// All master weights, one sub-model's after the other, without borrowed ones.
std::vector<float> all_weights(const scheduler::Plan& plan, const ParameterState& state,
                               const NvmeStore* nvme = nullptr);

}  // namespace offstage::exec::testing
