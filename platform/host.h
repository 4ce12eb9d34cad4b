#pragma once

#include <optional>
#include <string>
#include <vector>

#include "platform/document.h"
#include "platform/machine.h"
#include "platform/virtual_machine.h"

// This computer as a machine of virtual GPUs, as found by hwloc: cores, NUMA nodes, memory, and the
// limits of a container. Its rates are guesses until `calibrate` has measured them, and say so.
//
//   const Machine machine = find_host({.virtual_gpus = 2, .gpu_memory = mebibytes(512)});
namespace offstage::platform {

// A folder's drive, as asked for: what it holds and how fast it is are not found out.
struct DriveOptions {
  Bytes capacity;
  BytesPerSecond read, write;
};

struct HostOptions {
  int virtual_gpus = 1;
  Bytes gpu_memory = gibibytes(1);                   // of each virtual GPU
  std::optional<int> cores = {};                     // absent: what this process may use
  int optimizer_threads = 1;                         // that share one update
  std::optional<Bytes> host_memory = {};             // absent: what this computer or container has
  std::optional<BytesPerSecond> copy_throttle = {};  // copy engines go no faster
  std::vector<double> copy_shares = {};              // of it, by virtual GPU
  std::optional<DriveOptions> drive = {};            // absent: no state on NVMe
};

// What a run config's `platform: {name: host, ...}` may say: virtual_gpus, gpu_memory_bytes, cores,
// optimizer_threads, host_memory_bytes, copy_throttle_bytes_per_s, copy_shares, and drive:
// {capacity_bytes, read_bytes_per_s, write_bytes_per_s}. Keys of hosts.h may stand beside them.
// Errors: Error(bad_input) with place.
HostOptions read_host_options(const Node& node);

// Errors: Error(bad_input) when the virtual GPUs need more memory than there is; Error(device) when
// hwloc finds nothing.
Machine find_host(const HostOptions& options);

// The same before it becomes a machine, for `calibrate` to put measurements in.
VirtualMachine find_virtual_host(const HostOptions& options);

}  // namespace offstage::platform
