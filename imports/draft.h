#pragma once

#include <optional>
#include <string_view>

#include "imports/import.h"
#include "imports/settings.h"

// What the importers of all formats have in common: the answer under way, and the questions that
// every file leaves to somebody: batch, precision, sequence length, recomputation.
namespace offstage::imports {

enum class Half { none, fp16, bf16 };

// What a training script decides where a file says `auto`, or nothing. Empty: not known.
struct Trainer {
  std::optional<std::int64_t> micro_batch, accumulation;
  std::optional<double> clip_norm;
  std::optional<Half> half;
  std::optional<bool> recompute;
};

// Defaults of Hugging Face's TrainingArguments (transformers 5.23, training_args.py).
constexpr std::int64_t kTrainerMicroBatch = 8;    // per_device_train_batch_size
constexpr std::int64_t kTrainerAccumulation = 1;  // gradient_accumulation_steps
constexpr double kTrainerClipNorm = 1.0;          // max_grad_norm

// Sequences in a step = micro-batch x accumulation x data-parallel ranks.
struct BatchKeys {
  std::string_view train, micro, accumulation;  // the keys' names; train may be empty
};

// Reads the three keys and sets the draft's micro-batch and global batch, the way DeepSpeed does
// (DeepSpeedConfig._set_batch_related_parameters); the command line has the last word.
void read_batch(Settings& settings, const BatchKeys& keys, const Trainer& trainer,
                const ImportQuestion& question, Imported& draft);

// The GPUs of the run: the command line's, else `wanted` by the file, else all of the machine.
void decide_gpus(Settings& settings, const Setting<std::int64_t>& wanted,
                 const ImportQuestion& question, Imported& draft);

// `from_file`: as the file says.
void decide_sequence_length(Settings& settings, const Setting<std::int64_t>& from_file,
                            const ImportQuestion& question, Imported& draft);

// Where the file leaves recomputation open: the command line's, else none, with a finding that says
// so and names `key`, which would decide it.
void decide_recompute(Settings& settings, std::string_view key, const Trainer& trainer,
                      const ImportQuestion& question, Imported& draft);

// Clips when the norm is more than 0. `auto` is the trainer's.
void read_clipping(Settings& settings, std::string_view key, const Trainer& trainer,
                   Imported& draft);

}  // namespace offstage::imports
