#pragma once

#include "platform/document.h"
#include "platform/virtual_machine.h"

// What a run config may change of a machine of virtual GPUs, so that one calibration serves any
// number of them: `platform: {name: calibrated/platform.yaml, virtual_gpus: 2, gpu_memory_bytes:
// 64MiB}`.
namespace offstage::platform {

// Reads `map` beside its name and the keys of hosts.h, and applies it. Collectives are copies and
// sums by cores: their times change with the number of arrays that are read and written.
// Errors: Error(bad_input) with place; also for several GPUs of a machine whose collectives nobody
// measured, because it has one.
VirtualMachine changed(const Node& map, VirtualMachine spec);

}  // namespace offstage::platform
