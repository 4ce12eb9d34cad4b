#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "platform/units.h"
#include "scheduler/plan.h"

// What this computer has left now, held against what a plan is about to take: before the first byte
// is allocated, since afterwards the kernel ends whom it likes.
namespace offstage::exec {

struct HostRoom {
  platform::Bytes memory_available;                   // MemAvailable of /proc/meminfo
  std::optional<platform::Bytes> control_group_left;  // absent: no limit
};
// Errors: Error(device) when /proc can't be read.
HostRoom read_host_room();

// All pools of a machine of virtual GPUs are this computer's memory, but for drives.
platform::Bytes planned_memory(const scheduler::Plan& plan);
// Errors: Error(does_not_fit) with every number.
void require_memory(const scheduler::Plan& plan, const HostRoom& room);

// Of one checkpoint, without its small files.
platform::Bytes checkpoint_bytes(const scheduler::Plan& plan);
// Room for `bytes` more in a folder that exists, for `what`.
// Errors: Error(does_not_fit) with the numbers; Error(io) when the folder can't be asked.
void require_disk(const std::string& folder, platform::Bytes bytes, const std::string& what);

}  // namespace offstage::exec
