#pragma once

#include <optional>
#include <string>
#include <vector>

#include "platform/document.h"
#include "platform/machine.h"

// A computer whose cores play the GPUs of the CPU backend: compute, copies, collectives and the
// optimizer all take core time from one link of kind `cores`, each flow at most the cores it has
// threads for. host.h fills it with this computer, `calibrate` with what it measured, and a machine
// file of `kind: virtual` keeps it.
//
//   VirtualMachine spec = find_virtual_host({.virtual_gpus = 2});
//   spec.core_copy_rate = {{7.1e9}, "calibrate, 2026-01-05", Confidence::high};
//   write_virtual_machine(spec, "host.yaml");
//   const Machine machine = make_machine(spec);
namespace offstage::platform {

// A folder of the computer that plays an NVMe drive. Reading and writing take no core time.
struct VirtualDrive {
  Sourced<Bytes> capacity;
  Sourced<BytesPerSecond> read, write;
  Sourced<Seconds> latency{{0.0}, "not told apart from the rate", Confidence::assumed};
};

struct VirtualMachine {
  std::string name = "host";
  std::string description;
  std::string file;
  std::string default_profile = "offstage-cpu";
  int virtual_gpus = 1;
  GpuModel gpu;  // rates are those of one core; launches_overlap is false
  int cores = 1;
  // Core-nanoseconds a second of all cores together: 1e9 x cores when they do not slow each other.
  Sourced<BytesPerSecond> core_rate;
  std::vector<int> numa_nodes;
  Sourced<Bytes> host_memory;          // of the computer
  std::vector<Reserve> host_reserves;  // without the virtual GPUs' memory, which is added
  Sourced<BytesPerSecond> core_copy_rate;
  std::optional<Sourced<BytesPerSecond>> copy_throttle;
  std::vector<double> copy_shares;  // of it, by virtual GPU; empty: each may have all of it
  int optimizer_threads = 1;
  Sourced<Seconds> optimizer_core_time_per_parameter;
  std::vector<CollectiveCurve> collectives;  // required with two or more virtual GPUs
  std::optional<VirtualDrive> drive;
};

// Errors: Error(bad_input) when the virtual GPUs and reserves need more memory than there is.
Machine make_machine(const VirtualMachine& spec);

// What the copy engines of a GPU are held to.
std::optional<BytesPerSecond> copy_throttle_of(const Machine& machine, std::size_t gpu);

// What make_machine made `machine` of. Precondition: has_virtual_gpus(machine).
VirtualMachine to_virtual(const Machine& machine);

// Curves of collectives that one core carries out by copying, for N virtual GPUs: as a guess before
// calibration. Moves (N-1) x bytes for a gather or scatter, twice that for an all-reduce.
std::vector<CollectiveCurve> guess_collectives(int virtual_gpus, BytesPerSecond core_copy_rate,
                                               const std::string& source);

// copy_shares: one for each virtual GPU, of a throttle that must be there.
// Errors: Error(bad_input) with place.
std::vector<double> read_copy_shares(const Node& node, bool is_throttled, int virtual_gpus);

// The map of a machine file of `kind: virtual`.
// Errors: Error(bad_input) with place.
VirtualMachine read_virtual_machine(const Node& root);

// Errors: Error(io) when the file can't be written.
void write_virtual_machine(const VirtualMachine& spec, const std::string& path);

}  // namespace offstage::platform
