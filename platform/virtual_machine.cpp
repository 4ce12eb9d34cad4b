#include "platform/virtual_machine.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "platform/format.h"
#include "platform/sourced_reader.h"

namespace offstage::platform {
namespace {

constexpr int kMostGpus = 1024, kMostCores = 65536;
constexpr double kSmallestShare = 1e-6;
// Core-nanoseconds of one core in a second: how links of kind `cores` count.
constexpr double kOneCore = 1e9;
constexpr const char* kGpuMemoryLine = "memory of the virtual GPUs";

class Builder {
 public:
  explicit Builder(const VirtualMachine& spec) : spec_(spec) {
    machine_.name = spec.name;
    machine_.description = spec.description;
    machine_.file = spec.file;
    machine_.default_profile = spec.default_profile;
    machine_.gpu_models = {spec.gpu};
    machine_.core_copy_rate = spec.core_copy_rate;
    machine_.copy_throttle = spec.copy_throttle;
    machine_.collectives = spec.collectives;
    machine_.copy_latency = {
        {0.0}, "a copy is a loop of a core and starts at once", Confidence::high};
  }

  Machine build() {
    const LinkId cores = link("cores", spec_.core_rate);
    const LinkId one_core = cap("one core", 1.0, "a task of one thread");
    const LinkId optimizer_cap =
        spec_.optimizer_threads > 1
            ? cap("optimizer threads", spec_.optimizer_threads, "threads of one update")
            : one_core;

    const RouteId compute = route("compute", {one_core, cores});
    std::vector<RouteId> copies{route("copy", {copy_cap("copy throttle", 1.0, one_core), cores})};
    for (std::size_t i = 0; i < spec_.copy_shares.size(); ++i) {
      const std::string name = fmt::format("gpu{} copy", i);
      copies.resize(i + 1);
      copies[i] =
          route(name, {copy_cap(name + " throttle", spec_.copy_shares[i], one_core), cores});
    }
    if (spec_.virtual_gpus > 1) {
      machine_.collective_route = route("collective", {one_core, cores});
    }
    add_gpus(compute, copies);
    add_socket(route("socket0.optimizer", {optimizer_cap, cores}));
    if (spec_.drive) add_drive(*spec_.drive);
    return std::move(machine_);
  }

 private:
  LinkId link(const std::string& name, const Sourced<BytesPerSecond>& capacity) {
    machine_.links.push_back({name, LinkKind::cores, capacity, false});
    return machine_.links.size() - 1;
  }
  LinkId cap(const std::string& name, double cores, const std::string& source) {
    machine_.links.push_back(
        {name, LinkKind::cores, {{cores * kOneCore}, source, Confidence::high}, true});
    return machine_.links.size() - 1;
  }
  // A throttled copy sleeps between blocks, so it takes a part of a core.
  LinkId copy_cap(const std::string& name, double share, LinkId one_core) {
    if (!spec_.copy_throttle) return one_core;
    const double part = share * spec_.copy_throttle->value.value / spec_.core_copy_rate.value.value;
    return part < 1.0 ? cap(name, part, "copy_throttle / core_copy_rate") : one_core;
  }
  RouteId route(const std::string& name, std::vector<LinkId> links) {
    machine_.routes.push_back({name, std::move(links), {0.0}});
    return machine_.routes.size() - 1;
  }

  void add_gpus(RouteId compute, const std::vector<RouteId>& copies) {
    for (int i = 0; i < spec_.virtual_gpus; ++i) {
      Gpu gpu;
      gpu.name = fmt::format("gpu{}", i);
      gpu.pool = machine_.pools.size();
      const auto place = static_cast<std::size_t>(i);
      if (!spec_.copy_shares.empty()) gpu.copy_share = spec_.copy_shares[place];
      gpu.h2d = gpu.d2h = {copies[std::min(place, copies.size() - 1)]};
      gpu.compute_route = compute;
      machine_.pools.push_back({gpu.name, PoolKind::gpu, spec_.gpu.memory, {}});
      machine_.gpus.push_back(std::move(gpu));
    }
  }

  void add_socket(RouteId optimizer) {
    Socket socket;
    socket.name = "socket0";
    socket.cores = spec_.cores;
    socket.numa_nodes = spec_.numa_nodes;
    socket.pool = machine_.pools.size();
    socket.optimizer = optimizer;
    socket.optimizer_on_cores = true;
    socket.optimizer_threads = spec_.optimizer_threads;
    socket.optimizer_core_time_per_parameter = spec_.optimizer_core_time_per_parameter;
    Pool host{"host0", PoolKind::host, spec_.host_memory, spec_.host_reserves};
    host.reserves.push_back(
        {kGpuMemoryLine,
         {spec_.gpu.memory.value * spec_.virtual_gpus,
          fmt::format("{} x {}", spec_.virtual_gpus, to_text(spec_.gpu.memory.value)),
          Confidence::high}});
    machine_.pools.push_back(std::move(host));
    machine_.sockets.push_back(std::move(socket));
  }

  void add_drive(const VirtualDrive& spec) {
    const auto one_way = [&](const char* name, const Sourced<BytesPerSecond>& rate) {
      machine_.links.push_back({name, LinkKind::nvme, rate, false});
      const RouteId made = route(name, {machine_.links.size() - 1});
      machine_.routes[made].latency = spec.latency.value;
      return made;
    };
    Drive drive;
    drive.name = "nvme0";
    drive.pool = machine_.pools.size();
    drive.read = {one_way("nvme0.read", spec.read)};
    drive.write = {one_way("nvme0.write", spec.write)};
    machine_.pools.push_back({drive.name, PoolKind::nvme, spec.capacity, {}});
    machine_.drives.push_back(std::move(drive));
  }

  const VirtualMachine& spec_;
  Machine machine_;
};

// What add_drive made `machine`'s drive of.
VirtualDrive to_virtual_drive(const Machine& machine) {
  const Drive& drive = machine.drives.front();
  const auto rate = [&](RouteId route) {
    return machine.links[machine.routes[route].links.front()].capacity;
  };
  return {machine.pools[drive.pool].capacity,
          rate(drive.read.front()),
          rate(drive.write.front()),
          {machine.routes[drive.read.front()].latency, "of a transfer", Confidence::medium}};
}

VirtualDrive read_drive(const Node& node) {
  node.allow_keys({"capacity_bytes", "read_bytes_per_s", "write_bytes_per_s", "latency_s"});
  VirtualDrive drive{.capacity = read_sourced_bytes(node.at("capacity_bytes")),
                     .read = read_sourced_rate(node.at("read_bytes_per_s")),
                     .write = read_sourced_rate(node.at("write_bytes_per_s"))};
  if (const auto latency = node.find("latency_s")) drive.latency = read_sourced_seconds(*latency);
  return drive;
}

void check_memory(const VirtualMachine& spec) {
  Bytes taken = spec.gpu.memory.value * spec.virtual_gpus;
  for (const Reserve& reserve : spec.host_reserves) taken += reserve.bytes.value;
  if (taken < spec.host_memory.value) return;
  throw Error(
      ErrorCode::bad_input,
      fmt::format("{}: {} virtual GPUs of {} and what the system uses need {}, but the "
                  "host has {}; use fewer or smaller virtual GPUs",
                  spec.file.empty() ? spec.name : spec.file, spec.virtual_gpus,
                  to_text(spec.gpu.memory.value), to_text(taken), to_text(spec.host_memory.value)));
}

}  // namespace

Machine make_machine(const VirtualMachine& spec) {
  OFFSTAGE_CHECK(spec.virtual_gpus >= 1 && spec.cores >= 1 && spec.optimizer_threads >= 1,
                 "a virtual machine needs a GPU, a core and an optimizer thread");
  OFFSTAGE_CHECK(spec.virtual_gpus == 1 || !spec.collectives.empty(),
                 "several virtual GPUs need collective curves");
  check_memory(spec);
  return Builder(spec).build();
}

std::optional<BytesPerSecond> copy_throttle_of(const Machine& machine, std::size_t gpu) {
  if (!machine.copy_throttle) return std::nullopt;
  return BytesPerSecond{machine.copy_throttle->value.value * machine.gpus[gpu].copy_share};
}

VirtualMachine to_virtual(const Machine& machine) {
  OFFSTAGE_CHECK(has_virtual_gpus(machine), "not a machine of virtual GPUs: " + machine.name);
  const Socket& socket = machine.sockets.front();
  const Pool& host = machine.pools[socket.pool];
  VirtualMachine spec;
  spec.name = machine.name;
  spec.description = machine.description;
  spec.file = machine.file;
  spec.default_profile = machine.default_profile;
  spec.virtual_gpus = static_cast<int>(machine.gpus.size());
  spec.gpu = machine.gpu_models.front();
  spec.cores = socket.cores;
  const auto cores = std::find_if(machine.links.begin(), machine.links.end(),
                                  [](const Link& link) { return !link.caps_each_flow; });
  OFFSTAGE_CHECK(cores != machine.links.end(), "a virtual machine without a link of cores");
  spec.core_rate = cores->capacity;
  spec.numa_nodes = socket.numa_nodes;
  spec.host_memory = host.capacity;
  for (const Reserve& reserve : host.reserves) {
    if (reserve.what != kGpuMemoryLine) spec.host_reserves.push_back(reserve);
  }
  spec.core_copy_rate = *machine.core_copy_rate;
  spec.copy_throttle = machine.copy_throttle;
  const auto has_less = [](const Gpu& gpu) { return gpu.copy_share != 1.0; };
  if (std::any_of(machine.gpus.begin(), machine.gpus.end(), has_less)) {
    for (const Gpu& gpu : machine.gpus) spec.copy_shares.push_back(gpu.copy_share);
  }
  spec.optimizer_threads = socket.optimizer_threads;
  spec.optimizer_core_time_per_parameter = socket.optimizer_core_time_per_parameter;
  spec.collectives = machine.collectives;
  if (!machine.drives.empty()) spec.drive = to_virtual_drive(machine);
  return spec;
}

std::vector<CollectiveCurve> guess_collectives(int virtual_gpus, BytesPerSecond core_copy_rate,
                                               const std::string& source) {
  // Two points make the straight line that copying is: time in proportion to size.
  constexpr Bytes kSmall{4096}, kLarge = gibibytes(1);
  std::vector<CollectiveCurve> curves;
  for (const auto kind :
       {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce}) {
    const std::int64_t passes = kind == CollectiveKind::all_reduce ? 2 : 1;
    const std::int64_t copies = passes * (virtual_gpus - 1);
    CollectiveCurve curve{kind, {{}, source, Confidence::assumed}};
    for (const Bytes size : {kSmall, kLarge}) {
      curve.points.value.emplace_back(size, size * copies / core_copy_rate);
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

std::vector<double> read_copy_shares(const Node& node, bool is_throttled, int virtual_gpus) {
  if (!is_throttled) throw node.error("shares of copy_throttle_bytes_per_s, which is missing");
  std::vector<double> shares;
  for (const Node& share : node.items()) shares.push_back(share.number(kSmallestShare, 1.0));
  if (shares.size() != static_cast<std::size_t>(virtual_gpus)) {
    throw node.error(fmt::format("expected a share for each of {} virtual GPUs, got {}",
                                 virtual_gpus, shares.size()));
  }
  return shares;
}

VirtualMachine read_virtual_machine(const Node& root) {
  root.allow_keys({"kind", "name", "description", "default_profile", "virtual_gpus", "gpu_model",
                   "cores", "core_nanoseconds_per_s", "numa_nodes", "host_memory_bytes",
                   "host_reserves", "core_copy_rate_bytes_per_s", "copy_throttle_bytes_per_s",
                   "optimizer_threads", "optimizer_core_time_per_parameter_s", "collectives",
                   "drive", "copy_shares"});
  VirtualMachine spec;
  spec.file = root.where().file;
  spec.name = root.at("name").text();
  spec.description = root.at("description").text();
  spec.default_profile = root.at("default_profile").text();
  spec.virtual_gpus = static_cast<int>(root.at("virtual_gpus").integer(1, kMostGpus));
  spec.gpu = read_gpu_model(root.at("gpu_model"));
  if (const auto reserves = root.at("gpu_model").find("reserves")) {
    throw reserves->error("virtual GPUs reserve nothing; give what is left as memory_bytes");
  }
  spec.cores = static_cast<int>(root.at("cores").integer(1, kMostCores));
  spec.core_rate = read_sourced_rate(root.at("core_nanoseconds_per_s"));
  for (const Node& node : root.at("numa_nodes").items()) {
    spec.numa_nodes.push_back(static_cast<int>(node.integer(0, kMostCores)));
  }
  spec.host_memory = read_sourced_bytes(root.at("host_memory_bytes"));
  spec.host_reserves = read_reserves(root.at("host_reserves"));
  spec.core_copy_rate = read_sourced_rate(root.at("core_copy_rate_bytes_per_s"));
  if (const auto throttle = root.find("copy_throttle_bytes_per_s")) {
    spec.copy_throttle = read_sourced_rate(*throttle);
  }
  if (const auto shares = root.find("copy_shares")) {
    spec.copy_shares = read_copy_shares(*shares, root.find("copy_throttle_bytes_per_s").has_value(),
                                        spec.virtual_gpus);
  }
  spec.optimizer_threads = static_cast<int>(root.at("optimizer_threads").integer(1, kMostCores));
  spec.optimizer_core_time_per_parameter =
      read_sourced_seconds(root.at("optimizer_core_time_per_parameter_s"));
  if (spec.virtual_gpus > 1 || root.find("collectives")) {
    spec.collectives = read_collectives(root.at("collectives"));
  }
  if (const auto drive = root.find("drive")) spec.drive = read_drive(*drive);
  return spec;
}

}  // namespace offstage::platform
