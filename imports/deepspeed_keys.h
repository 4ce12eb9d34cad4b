#pragma once

#include "imports/known_keys.h"
#include "imports/settings.h"

// The keys of DeepSpeed's JSON, which GPT-NeoX's files hold too.
// Source: DeepSpeed at edaa72212 (August 2026): runtime/config.py, runtime/constants.py,
// runtime/zero/config.py, runtime/zero/offload_config.py, runtime/precision_config.py,
// runtime/activation_checkpointing/config.py, runtime/swap_tensor/constants.py; what older versions
// had is in docs/_pages/config-json.md of their time.
namespace offstage::imports {

std::span<const KnownKey> deepspeed_keys();

// Its ZeRO and precision sections are pydantic models that forbid extra keys
// (runtime/config_utils.py); elsewhere nobody looks at keys that nobody knows.
UnknownKeys deepspeed_unknown_keys();

}  // namespace offstage::imports
