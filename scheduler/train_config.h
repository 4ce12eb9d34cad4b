#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platform/document.h"
#include "platform/units.h"
#include "scheduler/strategy.h"

// The `train` section of a run config: what only a training reads.
namespace offstage::scheduler {

// How a token is stored in a file of training data. automatic: 16 or 32 bits in .bin files, as
// their header says (16 without one); bytes in every other file.
enum class TokenType { automatic, bytes, uint16, uint32 };

// random: sequences from anywhere, drawn with the seed; sequential: one after the other.
enum class SampleOrder { random, sequential };

struct ValidationConfig {
  std::vector<std::string> data;
  std::int64_t every = 0;    // steps
  std::int64_t batches = 1;  // global batches of sequences, the first of the data
};

// The learning rate rises from 0 over the first steps, then is constant, or falls along half a
// cosine or a line to `final_fraction` of itself at the last step.
struct LearningRateSchedule {
  enum class Kind { constant, cosine, linear };
  Kind kind = Kind::constant;
  std::int64_t warmup_steps = 0;
  double final_fraction = 0.0;
  std::optional<std::int64_t> steps;  // the last step; without it, that of the training
};

// How weights are written for others to read, as Hugging Face's safetensors.
enum class SavedType { f32, f16, bf16 };

struct SaveConfig {
  std::string directory;
  SavedType type = SavedType::f32;
};

// Also the run's folder: log, metrics, the socket that `offstage status` talks to.
struct CheckpointConfig {
  std::string directory;
  std::optional<std::int64_t> every;  // steps; without it, only when the training ends or is ended
  std::int64_t keep = 2;              // newest checkpoints that stay
};

struct TrainConfig {
  std::vector<std::string> data;
  TokenType token_type = TokenType::automatic;
  SampleOrder order = SampleOrder::random;
  std::optional<ValidationConfig> validation;
  std::int64_t steps = 0;
  double learning_rate = 3e-4;
  LearningRateSchedule schedule;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.0;
  bool decay_all = false;  // norms and biases too; without it, only what has two dimensions
  std::uint64_t seed = 0;
  // Gradients are scaled down so that their norm is at most this: exactly when clipping is exact.
  std::optional<double> clip_norm;
  // Where the state of sub-models on NVMe goes, when the plan has any.
  std::optional<std::string> nvme_directory;
  std::optional<std::string> initialise_from;  // a Hugging Face checkpoint: folder, index or file
  std::optional<SaveConfig> save;
  std::optional<CheckpointConfig> checkpoint;
  // With several hosts: how long one waits for another before the run ends. Longer than one may lag
  // behind: what takes longer on some, such as loading weights, counts.
  platform::Seconds peer_timeout{60.0};
  // A task that runs longer is reported; one that runs ten times as long ends the run.
  platform::Seconds watchdog{60.0};
};

// Relative paths are taken from the file's folder.
// Errors: Error(bad_input) with place, what is allowed, the nearest match.
TrainConfig read_train(const platform::Node& node);

// Errors: Error(bad_input) when clip_norm is missing with exact clipping, or given without.
void require_clip_norm(const TrainConfig& train, Clipping clipping);

}  // namespace offstage::scheduler
