#pragma once

#include "imports/draft.h"
#include "platform/document.h"

// DeepSpeed's JSON.
namespace offstage::imports {

// `trainer`: what the script around the file has decided, for its `auto` values.
Imported import_deepspeed(const platform::Node& root, const Trainer& trainer,
                          const ImportQuestion& question);

// Sections that GPT-NeoX's files share, too. They expect draft.strategy's parallel sizes.
// `pipelined`: DeepSpeed does not overlap collectives under a pipeline, whatever the file says.
void read_zero(Settings& settings, bool pipelined, const ImportQuestion& question, Imported& draft);
void read_precision(Settings& settings, const Trainer& trainer, Imported& draft);
void read_optimizer(Settings& settings, Imported& draft);

// The system that shares what this ZeRO stage shares, with state where the strategy has it already.
void choose_zero_system(std::int64_t stage, scheduler::systems::SystemStrategy& strategy);

}  // namespace offstage::imports
