#include "platform/host.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <hwloc.h>

#include "platform/control_group.h"
#include "platform/format.h"

namespace offstage::platform {
namespace {

constexpr const char* kGuess = "uncalibrated default: run `offstage calibrate`";
constexpr int kMostGpus = 1024, kMostCores = 65536;
constexpr Bytes kMostBytes = gibibytes(1'048'576);
constexpr double kHighestRate = 1e15;  // bytes a second

// Guesses of the order of an AVX2 core at 2.5 GHz, so that plans and simulations of an uncalibrated
// host are not absurd; each is marked kGuess and assumed.
constexpr FlopsPerSecond kPeakF32{80e9}, kGemmF32{50e9}, kAttentionF32{20e9};
constexpr BytesPerSecond kMemoryBandwidth{10e9}, kCopyRate{5e9};
constexpr Seconds kLaunchInterval{5e-6}, kOptimizerTime{3e-9};

template <typename T>
Sourced<T> guess(T value) {
  return {value, kGuess, Confidence::assumed};
}

struct FreeTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, FreeTopology>;

Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw Error(ErrorCode::device, "hwloc can't be initialised");
  Topology topology(raw);
  if (hwloc_topology_load(topology.get()) != 0) {
    throw Error(ErrorCode::device, "hwloc can't read this computer's topology");
  }
  return topology;
}

int count(const Topology& topology, hwloc_obj_type_t type) {
  return std::max(0, hwloc_get_nbobjs_by_type(topology.get(), type));
}

std::string cpu_model(const Topology& topology) {
  const hwloc_obj_t package = hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_PACKAGE, 0);
  const char* model =
      package != nullptr ? hwloc_obj_get_info_by_name(package, "CPUModel") : nullptr;
  return model != nullptr ? model : "a CPU of unknown model";
}

std::string read_file(const char* path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// A line such as "MemTotal:  24684092 kB" of /proc/meminfo, which counts in 1024 bytes.
Bytes memory_line(const std::string& meminfo, const std::string& name) {
  const auto at = meminfo.find(name + ":");
  if (at == std::string::npos) {
    throw Error(ErrorCode::device, fmt::format("/proc/meminfo has no line {}", name));
  }
  std::istringstream line(meminfo.substr(at + name.size() + 1));
  std::int64_t kibibytes = 0;
  line >> kibibytes;
  return {kibibytes * 1024};
}

// Capacity and what is in use, from the computer or from the tighter limit of a container.
void find_memory(const HostOptions& options, const ControlGroupLimits& limits,
                 VirtualMachine& spec) {
  const std::string meminfo = read_file("/proc/meminfo");
  const Bytes total = memory_line(meminfo, "MemTotal");
  const Bytes used = total - memory_line(meminfo, "MemAvailable");
  if (options.host_memory) {
    spec.host_memory = {*options.host_memory, "as asked for", Confidence::high};
    spec.host_reserves.clear();
  } else if (limits.memory && *limits.memory < total) {
    spec.host_memory = {*limits.memory, "limit of the control group", Confidence::high};
    spec.host_reserves = {
        {"already in use",
         {limits.memory_used.value_or(Bytes{0}),
          "usage of the control group when asked, without droppable cache", Confidence::medium}}};
  } else {
    spec.host_memory = {total, "MemTotal in /proc/meminfo", Confidence::high};
    spec.host_reserves = {
        {"already in use",
         {used, "MemTotal less MemAvailable in /proc/meminfo when asked", Confidence::medium}}};
  }
  // A pool's reserves are written to files as sizes of at least one byte.
  std::erase_if(spec.host_reserves,
                [](const Reserve& line) { return line.bytes.value.value <= 0; });
}

GpuModel guess_gpu(Bytes memory) {
  GpuModel gpu;
  gpu.name = "virtual";
  gpu.memory = {memory, "as asked for", Confidence::high};
  gpu.context_bytes = {{0}, "has none", Confidence::high};
  gpu.collective_bytes = {{0}, "has none", Confidence::high};
  gpu.peak_bf16 = {{0.0}, "not offered", Confidence::high};
  gpu.peak_f32 = guess(kPeakF32);
  gpu.memory_bandwidth = guess(kMemoryBandwidth);
  gpu.launch_interval = guess(kLaunchInterval);
  gpu.launches_overlap = false;
  gpu.gemm = guess(std::vector<GemmPoint>{{Precision::f32, 256, 256, 256, kGemmF32},
                                          {Precision::f32, 4096, 4096, 4096, kGemmF32}});
  std::vector<AttentionPoint> points;
  for (const bool causal : {false, true}) {
    for (const std::int64_t sequence_length : {128, 4096}) {
      points.push_back({Precision::f32, 64, sequence_length, causal, kAttentionF32});
    }
  }
  gpu.attention = guess(std::move(points));
  return gpu;
}

DriveOptions read_drive_options(const Node& node) {
  node.allow_keys({"capacity_bytes", "read_bytes_per_s", "write_bytes_per_s"});
  const auto rate = [&node](const char* key) {
    return BytesPerSecond{node.at(key).number(1.0, kHighestRate)};
  };
  return {node.at("capacity_bytes").bytes({1}, kMostBytes), rate("read_bytes_per_s"),
          rate("write_bytes_per_s")};
}

}  // namespace

HostOptions read_host_options(const Node& node) {
  node.allow_keys({"name", "virtual_gpus", "gpu_memory_bytes", "cores", "optimizer_threads",
                   "host_memory_bytes", "copy_throttle_bytes_per_s", "copy_shares", "drive",
                   "hosts", "network_bytes_per_s"});
  HostOptions options;
  if (const auto gpus = node.find("virtual_gpus")) {
    options.virtual_gpus = static_cast<int>(gpus->integer(1, kMostGpus));
  }
  if (const auto memory = node.find("gpu_memory_bytes")) {
    options.gpu_memory = memory->bytes({1}, kMostBytes);
  }
  if (const auto cores = node.find("cores")) {
    options.cores = static_cast<int>(cores->integer(1, kMostCores));
  }
  if (const auto threads = node.find("optimizer_threads")) {
    options.optimizer_threads = static_cast<int>(threads->integer(1, kMostCores));
  }
  if (const auto memory = node.find("host_memory_bytes")) {
    options.host_memory = memory->bytes({1}, kMostBytes);
  }
  if (const auto throttle = node.find("copy_throttle_bytes_per_s")) {
    options.copy_throttle = BytesPerSecond{throttle->number(1.0, kHighestRate)};
  }
  if (const auto shares = node.find("copy_shares")) {
    options.copy_shares =
        read_copy_shares(*shares, options.copy_throttle.has_value(), options.virtual_gpus);
  }
  if (const auto drive = node.find("drive")) options.drive = read_drive_options(*drive);
  return options;
}

VirtualMachine find_virtual_host(const HostOptions& options) {
  const Topology topology = load_topology();
  const auto limits = read_control_group_limits(read_file("/proc/self/cgroup"), "/sys/fs/cgroup");
  const int threads = std::max(1, count(topology, HWLOC_OBJ_PU));
  // A quota of a core and a half runs a second thread half of the time.
  const double usable = std::min(static_cast<double>(threads), limits.cores.value_or(threads));

  VirtualMachine spec;
  spec.cores = options.cores.value_or(std::max(1, static_cast<int>(std::ceil(usable))));
  const double rate = options.cores ? *options.cores : usable;
  spec.core_rate = {
      {rate * 1e9}, options.cores ? "as asked for" : "hwloc and control group", Confidence::medium};
  for (int i = 0; i < count(topology, HWLOC_OBJ_NUMANODE); ++i) {
    const hwloc_obj_t node =
        hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_NUMANODE, static_cast<unsigned>(i));
    spec.numa_nodes.push_back(static_cast<int>(node->os_index));
  }
  spec.description = fmt::format(
      "this computer, uncalibrated (rates are guesses): {}, {} cores with {} hardware threads",
      cpu_model(topology), count(topology, HWLOC_OBJ_CORE), threads);
  spec.virtual_gpus = options.virtual_gpus;
  spec.gpu = guess_gpu(options.gpu_memory);
  find_memory(options, limits, spec);
  spec.core_copy_rate = guess(kCopyRate);
  if (options.copy_throttle) {
    spec.copy_throttle = {*options.copy_throttle, "as asked for", Confidence::high};
    spec.copy_shares = options.copy_shares;
  }
  if (options.drive) {
    spec.drive = {{options.drive->capacity, "as asked for", Confidence::medium},
                  {options.drive->read, "as asked for", Confidence::assumed},
                  {options.drive->write, "as asked for", Confidence::assumed}};
  }
  spec.optimizer_threads = options.optimizer_threads;
  spec.optimizer_core_time_per_parameter = guess(kOptimizerTime);
  if (options.virtual_gpus > 1) {
    spec.collectives = guess_collectives(options.virtual_gpus, kCopyRate, kGuess);
  }
  return spec;
}

Machine find_host(const HostOptions& options) { return make_machine(find_virtual_host(options)); }

}  // namespace offstage::platform
