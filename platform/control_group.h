#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "platform/units.h"

// What a container or batch system lets this process have, beneath what the computer has. Reads
// Linux control groups, version 1 and 2.
namespace offstage::platform {

struct ControlGroupLimits {
  std::optional<Bytes> memory;       // absent: no limit
  std::optional<Bytes> memory_used;  // of the limit, without file cache that can be dropped
  std::optional<double> cores;       // CPU quota; absent: no limit
};

// `membership` is the text of /proc/self/cgroup, `mount` the folder control groups are mounted on
// (/sys/fs/cgroup). The tightest limit on the way from the group to the root counts.
ControlGroupLimits read_control_group_limits(const std::string& membership,
                                             const std::filesystem::path& mount);

}  // namespace offstage::platform
