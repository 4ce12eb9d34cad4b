#pragma once

#include "imports/known_keys.h"
#include "imports/settings.h"

// The keys of GPT-NeoX's files beside DeepSpeed's.
// Source: gpt-neox at ea7aefd8 (May 2026): megatron/neox_arguments/neox_args.py, deepspeed_args.py.
namespace offstage::imports {

std::span<const KnownKey> neox_keys();

// NeoXArgs is a dataclass: it refuses extra keys at the root. The sections go to its own fork of
// DeepSpeed, which passes over them.
UnknownKeys neox_unknown_keys();

}  // namespace offstage::imports
