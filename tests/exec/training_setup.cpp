#include "tests/exec/training_setup.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace offstage::exec::testing {

workloads::Model byte_model(workloads::Model model) {
  model.vocab = 256;
  return model;
}

workloads::Model untied(workloads::Model model) {
  model.tied_embeddings = false;
  return model;
}

workloads::Workload workload(const workloads::Model& model, std::int64_t global_batch,
                             platform::Precision precision) {
  workloads::Workload workload;
  workload.model = model;
  workload.sequence_length = 12;
  workload.global_batch = global_batch;
  workload.precision = precision;
  return workload;
}

TextFile::TextFile(std::int64_t words)
    : path_(std::filesystem::temp_directory_path() /
            fmt::format("offstage-text-{}-{}", getpid(), static_cast<const void*>(this))) {
  constexpr std::array<const char*, 16> kWords{"the",  "light", "and",   "earth", "was", "without",
                                               "form", "void",  "water", "day",   "of",  "good",
                                               "let",  "there", "be",    "night"};
  std::ofstream out(path_);
  // Knuth's 64-bit linear congruential generator (MMIX): the same text everywhere.
  std::uint64_t state = 1;
  for (std::int64_t i = 0; i < words; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    out << kWords[state >> 60U] << (i % 11 == 10 ? ".\n" : " ");
  }
}

TextFile::~TextFile() { std::remove(path_.c_str()); }

scheduler::TrainConfig train_config(const TextFile& text) {
  scheduler::TrainConfig config;
  config.data = {text.path()};
  config.learning_rate = 3e-3;
  config.weight_decay = 0.1;
  config.seed = 7;
  return config;
}

Outcome run(const scheduler::Plan& plan, const scheduler::TrainConfig& config, std::int64_t steps,
            TrainerOptions options) {
  Trainer trainer(plan, config, std::move(options));
  TrainResult result = trainer.train(steps);
  return {.losses = std::move(result.losses),
          .weights = all_weights(plan, trainer.state(), trainer.nvme()),
          .memory = std::move(result.memory)};
}

std::size_t differing(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) {
    return std::max(a.size(), b.size());
  }
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    count += a[i] == b[i] ? 0 : 1;
  }
  return count;
}

std::vector<float> all_weights(const scheduler::Plan& plan, const ParameterState& state,
                               const NvmeStore* nvme) {
  std::vector<float> weights(static_cast<std::size_t>(plan.parameters()));
  read_state(plan, state, nvme, {StatePart::master, 0}, weights);
  return weights;
}

}  // namespace offstage::exec::testing
