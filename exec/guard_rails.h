#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "exec/device_layer.h"
#include "platform/units.h"
#include "scheduler/plan.h"

// What this computer has left now, held against what a plan is about to take: before the first byte
// is allocated, since afterwards the kernel ends whom it likes.
namespace offstage::exec {

struct HostRoom {
  platform::Bytes memory_available;                   // MemAvailable of /proc/meminfo
  std::optional<platform::Bytes> control_group_left;  // absent: no limit
  std::optional<platform::Bytes> lockable;            // RLIMIT_MEMLOCK; absent: no limit
};
// Errors: Error(device) when /proc can't be read.
HostRoom read_host_room();

// What a plan takes of this computer's memory: every pool but drives, and but real GPUs.
platform::Bytes planned_memory(const scheduler::Plan& plan, bool real_gpus);
// devices: of real GPUs, whose own free memory must do as well, and who lock the CPU's; null: GPUs
// are virtual. Errors: Error(does_not_fit) with every number; the devices' own.
void require_memory(const scheduler::Plan& plan, const HostRoom& room, const DeviceMemory* devices);

// Of one checkpoint, without its small files.
platform::Bytes checkpoint_bytes(const scheduler::Plan& plan);
// Room for `bytes` more in a folder that exists, for `what`.
// Errors: Error(does_not_fit) with the numbers; Error(io) when the folder can't be asked.
void require_disk(const std::string& folder, platform::Bytes bytes, const std::string& what);

}  // namespace offstage::exec
