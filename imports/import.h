#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "imports/finding.h"
#include "platform/machine.h"
#include "scheduler/systems/system_strategy.h"
#include "workloads/model.h"

// From the files that others train with to a published system and its knobs: DeepSpeed's JSON,
// accelerate's YAML, GPT-NeoX's yml, and the command line of a Hugging Face Trainer.
//
//   const Imported imported = import_config("ds_z3.json", {.model = model, .gpus = 8});
//   if (!imported.refused()) make_system_plan(machine, workload, imported.strategy, profile);
namespace offstage::imports {

// What stands beside the file: its keys follow from some of it, and the command line has the last
// word on the batch.
struct ImportQuestion {
  workloads::Model model;
  std::int64_t gpus = 1;  // of the machine
  bool has_drives = true;
  // As asked on the command line; each overrides the file.
  std::optional<std::int64_t> fixed_gpus, sequence_length, global_batch, micro_batch;
  std::optional<scheduler::systems::Recompute> recompute;
};

enum class Format { deepspeed, accelerate, neox, trainer_flags };

struct Imported {
  Format format = Format::deepspeed;
  scheduler::systems::SystemStrategy strategy;
  // Whose software it runs, where that is another's than the strategy's system: FSDP with
  // SHARD_GRAD_OP shares what ZeRO-2 shares.
  std::optional<scheduler::systems::System> software;
  std::int64_t gpus = 1;  // that the file, or the command line, wants
  std::int64_t sequence_length = 0, global_batch = 0;
  platform::Precision precision = platform::Precision::bf16;  // fp16 counts as bf16
  bool clips_gradients = false;
  std::vector<Finding> findings;

  // Some finding is a fault: the strategy is what was probably meant.
  bool refused() const;
};

// The format is told by the keys, whatever the file's name.
// Errors: Error(bad_input) with file, line and column when the file can't be read, isn't JSON or
// YAML, or is none of the formats. What a key gets wrong is a finding instead.
Imported import_config(const std::string& file, const ImportQuestion& question);

std::string to_string(Format format);

}  // namespace offstage::imports
