#pragma once

#include <string>

#include "imports/draft.h"
#include "platform/document.h"

// accelerate's YAML (or JSON), and PyTorch's FSDP, which Trainer's flags configure, too.
namespace offstage::imports {

// Errors: as import_config, about the DeepSpeed file that this one may name.
Imported import_accelerate(const platform::Node& root, const ImportQuestion& question);

// The keys below `prefix`, "fsdp_config.fsdp_" in accelerate's file. `trainer`: what the script
// decides about recomputation.
void read_fsdp(Settings& settings, const std::string& prefix, Trainer trainer,
               const ImportQuestion& question, Imported& draft);

// One of PyTorch's sharding strategies, in capitals; `version` is FSDP's.
void apply_sharding(const std::string& name, scheduler::systems::SystemStrategy& strategy);

}  // namespace offstage::imports
