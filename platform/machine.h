#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platform/units.h"

// A machine as the scheduler sees it: memory pools, engines, links and the routes over them. Every
// number keeps its source and how far it can be trusted. Read from YAML by machine_reader.h or made
// from this host by host.h; never changed afterwards.
//
// Indices (PoolId, LinkId, ...) are positions in the vectors of Machine.
namespace offstage::platform {

enum class Confidence { high, medium, low, assumed };

template <typename T>
struct Sourced {
  T value{};
  std::string source;
  Confidence confidence = Confidence::assumed;
};

using PoolId = std::size_t;
using LinkId = std::size_t;
using RouteId = std::size_t;

enum class Precision { bf16, f32 };

// A rate measured for one matrix product C[m,n] = A[m,k] B[k,n].
struct GemmPoint {
  Precision precision = Precision::bf16;
  std::int64_t m = 0, n = 0, k = 0;
  FlopsPerSecond rate;
};

// A rate measured for fused attention, forward and backward together, counting 4 s^2 d FLOP a head
// for the forward pass and 2.5 times that for the backward one (half of it when causal).
struct AttentionPoint {
  Precision precision = Precision::bf16;
  std::int64_t head_dim = 0, sequence_length = 0;
  bool causal = true;
  FlopsPerSecond rate;
};

struct GpuModel {
  std::string name;
  Sourced<Bytes> memory;              // what the driver reports as total
  Sourced<Bytes> context_bytes;       // taken by context and kernels
  Sourced<Bytes> collective_bytes;    // taken by the collective library's buffers
  Sourced<FlopsPerSecond> peak_bf16;  // 0: not offered (virtual GPUs compute in f32)
  Sourced<FlopsPerSecond> peak_f32;
  Sourced<BytesPerSecond> memory_bandwidth;  // of a streaming kernel, reads plus writes
  Sourced<Seconds> launch_interval;          // between two kernels of one stream, at the least
  // true: launches hide behind running kernels (a GPU stream), an operation takes
  // max(work, interval). false: they add up (operations called on a CPU core).
  bool launches_overlap = true;
  Sourced<std::vector<GemmPoint>> gemm;
  Sourced<std::vector<AttentionPoint>> attention;
};

enum class PoolKind { gpu, host, nvme };

// A line of memory that is taken before offstage starts.
struct Reserve {
  std::string what;
  Sourced<Bytes> bytes;
};

struct Pool {
  std::string name;  // "gpu0", "host0", "nvme0"
  PoolKind kind = PoolKind::gpu;
  Sourced<Bytes> capacity;
  std::vector<Reserve> reserves;  // context, collective library, operating system
};

enum class LinkKind {
  pcie,
  pcie_uplink,
  pcie_duplex,
  dram,
  socket_link,
  nvswitch_port,
  cores,
  nvme,
  network
};

// Shared by the flows that cross it, max-min fairly. A link of kind `cores` carries
// core-nanoseconds: its capacity is 1e9 a second for each core.
struct Link {
  std::string name;
  LinkKind kind = LinkKind::pcie;
  Sourced<BytesPerSecond> capacity;
  bool caps_each_flow = false;  // limits every flow by itself, shares nothing
};

struct Route {
  std::string name;
  std::vector<LinkId> links;  // a link named twice is loaded with twice the bytes
  Seconds latency;
};

// Where GPUs and drives share one uplink to the CPU.
struct Switch {
  std::string name;
  std::size_t socket = 0;             // at the end of the chain of parents
  std::optional<std::size_t> parent;  // another switch; absent: the socket
  LinkId down = 0, up = 0;            // its uplink, away from and towards the CPU
  std::optional<LinkId> duplex;       // loaded by both directions
};

struct Gpu {
  std::string name;  // "gpu0"
  std::size_t model = 0;
  std::size_t socket = 0;
  std::optional<std::size_t> pcie_switch;
  std::optional<int> numa_node;
  PoolId pool = 0;
  std::vector<RouteId> h2d;  // from the memory of socket s, by s
  std::vector<RouteId> d2h;
  double speed = 1.0;       // of its compute, relative to the model: a slow card is 0.8
  double copy_share = 1.0;  // of Machine::copy_throttle: an uneven link
  // Present where compute shares cores with everything else (virtual GPUs on a CPU): compute tasks
  // then are flows of core-nanoseconds over this route.
  std::optional<RouteId> compute_route;
};

struct Socket {
  std::string name;  // "socket0"
  int cores = 0;
  std::vector<int> numa_nodes;
  PoolId pool = 0;
  RouteId optimizer = 0;  // the update of a shard held here: bytes of DRAM traffic, or, when
                          // optimizer_on_cores, core-nanoseconds
  bool optimizer_on_cores = false;
  // Cores that work on one update together, only when optimizer_on_cores.
  int optimizer_threads = 1;
  // Of one parameter's AdamW update at the lone rate, only when optimizer_on_cores.
  Sourced<Seconds> optimizer_core_time_per_parameter;
};

// An NVMe drive.
struct Drive {
  std::string name;  // "nvme0"
  std::size_t socket = 0;
  std::optional<std::size_t> pcie_switch;
  PoolId pool = 0;
  std::vector<RouteId> read;   // into the memory of socket s, by s
  std::vector<RouteId> write;  // from it
};

enum class CollectiveKind { all_gather, reduce_scatter, all_reduce };

// Measured time of a collective over all GPUs by total buffer size; interpolated in log-log, the
// ends extended at the end points' latency (below) and bandwidth (above).
struct CollectiveCurve {
  CollectiveKind kind = CollectiveKind::all_gather;
  Sourced<std::vector<std::pair<Bytes, Seconds>>> points;
};

struct Machine {
  std::string name, description;
  std::string file;             // where it was read; empty when found on this host
  std::string default_profile;  // name in calibration/profiles or a path
  // What loads it again: the JSON value of a run config's `platform` key, paths absolute. Set by
  // who read that key; plan files carry it.
  std::string reference;
  std::vector<GpuModel> gpu_models;
  std::vector<Pool> pools;
  std::vector<Link> links;
  std::vector<Route> routes;
  std::vector<Gpu> gpus;
  std::vector<Socket> sockets;
  std::vector<Switch> switches;
  std::vector<Drive> drives;
  // Of every copy between CPU and GPU, and of every drive: what Route::latency was taken from.
  Sourced<Seconds> copy_latency;
  std::vector<CollectiveCurve> collectives;
  // What a collective loads while it lasts: all NVSwitch ports, or the cores, or PCIe routes. Its
  // flow's amount is (curve time x the narrowest capacity), so that alone it takes the curve's
  // time. Absent on a machine with one GPU.
  std::optional<RouteId> collective_route;
  // By GPU, the links of that route which are loaded when it takes part; empty: all (cores).
  std::vector<std::vector<LinkId>> collective_ports;
  // Rate at which one core moves bytes between two places of memory; present where copies and
  // collectives are done by cores (h2d, d2h and collective routes then carry core-nanoseconds).
  std::optional<Sourced<BytesPerSecond>> core_copy_rate;
  std::optional<Sourced<BytesPerSecond>> copy_throttle;  // executor's copy engines are held to this
  int hosts = 1;                         // that train together (hosts.h): the rest is one's
  std::optional<RouteId> network_route;  // from one to the others and back, with two or more
};

// Whether this is a computer whose cores play the GPUs (CPU backend) rather than one with GPUs.
inline bool has_virtual_gpus(const Machine& machine) { return machine.core_copy_rate.has_value(); }

}  // namespace offstage::platform
