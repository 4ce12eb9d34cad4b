#pragma once

#include "imports/known_keys.h"
#include "imports/settings.h"

// The flags of Hugging Face's Trainer and of the launchers in front of a script.
// Source: transformers 5.23, training_args.py (TrainingArguments), and the flags that 4.x had;
// torchrun's and deepspeed's own help.
namespace offstage::imports {

// With fsdp_config's keys as those of accelerate.
std::span<const KnownKey> trainer_keys();

// Scripts add flags of their own, so that an unknown one is nobody's mistake.
UnknownKeys trainer_unknown_keys();

}  // namespace offstage::imports
