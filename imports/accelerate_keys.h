#pragma once

#include "imports/known_keys.h"
#include "imports/settings.h"

// The keys of accelerate's config.
// Source: accelerate at 16cb6eb8 (July 2026): commands/config/config_args.py (BaseConfig,
// ClusterConfig), commands/config/cluster.py, utils/launch.py, utils/dataclasses.py.
namespace offstage::imports {

std::span<const KnownKey> accelerate_keys();

// Extra keys at the root are an error (BaseConfig.from_yaml_file); those of the maps inside become
// environment variables that nobody reads.
UnknownKeys accelerate_unknown_keys();

}  // namespace offstage::imports
