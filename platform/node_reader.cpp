#include "platform/node_reader.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "platform/node_routes.h"
#include "platform/sourced_reader.h"

namespace offstage::platform {
namespace {

constexpr int kMostCores = 65536;

// Names of one kind of thing, each used once, and where in its vector it stands.
class Names {
 public:
  explicit Names(std::string kind) : kind_(std::move(kind)) {}

  std::string define(const Node& node) {
    const Node name = node.at("name");
    const std::string text = name.text();
    if (!index_.emplace(text, index_.size()).second) {
      throw name.error(fmt::format("a second {} named '{}'; rename one", kind_, text));
    }
    return text;
  }
  std::size_t find(const Node& reference) const {
    const std::string text = reference.text();
    const auto found = index_.find(text);
    if (found != index_.end()) return found->second;
    const auto known = names();
    const auto nearest = nearest_match(text, known);
    throw reference.error(fmt::format("no {} is named '{}'{}; known: {}", kind_, text,
                                      nearest ? fmt::format(", did you mean '{}'?", *nearest) : "",
                                      fmt::join(known, ", ")));
  }
  bool contains(const std::string& name) const { return index_.contains(name); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, position] : index_) names.push_back(name);
    return names;
  }

 private:
  std::string kind_;
  std::map<std::string, std::size_t> index_;
};

std::vector<Node> nonempty_list(const Node& root, const std::string& key, const std::string& why) {
  const Node node = root.at(key);
  auto items = node.items();
  if (items.empty()) throw node.error(fmt::format("the list is empty; {}", why));
  return items;
}

class NodeReader {
 public:
  NodeReader(const Node& root, const NodeChanges& changes) : root_(root), changes_(changes) {}

  Machine read() {
    root_.allow_keys({"kind", "name", "description", "default_profile", "copy_latency_s",
                      "gpu_models", "pcie_links", "sockets", "socket_links", "switches", "gpus",
                      "nvswitch", "collectives", "drive_models", "drives"});
    machine_.file = root_.where().file;
    machine_.name = root_.at("name").text();
    machine_.description = root_.at("description").text();
    machine_.default_profile = root_.at("default_profile").text();
    machine_.copy_latency = read_sourced_seconds(root_.at("copy_latency_s"));
    read_models();
    read_pcie_links();
    read_sockets();
    read_socket_links();
    read_switches();
    read_gpus();
    read_collective_network();
    read_drives();
    add_routes(machine_, ports_);
    return std::move(machine_);
  }

 private:
  struct PcieType {
    Sourced<BytesPerSecond> down, up;
    std::optional<Sourced<BytesPerSecond>> duplex;
  };
  struct DriveModel {
    Sourced<Bytes> capacity;
    Sourced<BytesPerSecond> read, write;
  };
  struct Parent {
    std::size_t socket = 0;
    std::optional<std::size_t> pcie_switch;
  };

  LinkId add_link(std::string name, LinkKind kind, const Sourced<BytesPerSecond>& capacity,
                  bool caps_each_flow = false) {
    machine_.links.push_back({std::move(name), kind, capacity, caps_each_flow});
    return machine_.links.size() - 1;
  }

  void read_models() {
    for (const Node& node :
         nonempty_list(root_, "gpu_models", "describe at least one model of GPU")) {
      model_names_.define(node);
      machine_.gpu_models.push_back(read_gpu_model(node));
      changes_.change(machine_.gpu_models.back());
      check_against_peak(node, machine_.gpu_models.back());
      const auto reserves = node.find("reserves");
      model_reserves_.push_back(reserves ? read_reserves(*reserves) : std::vector<Reserve>{});
    }
  }

  void read_pcie_links() {
    for (const Node& node :
         nonempty_list(root_, "pcie_links", "describe the links of switches and GPUs")) {
      node.allow_keys({"name", "down_bytes_per_s", "up_bytes_per_s", "duplex_bytes_per_s"});
      pcie_names_.define(node);
      PcieType type{read_sourced_rate(node.at("down_bytes_per_s")),
                    read_sourced_rate(node.at("up_bytes_per_s")), std::nullopt};
      if (const auto duplex = node.find("duplex_bytes_per_s")) {
        type.duplex = read_sourced_rate(*duplex);
      }
      pcie_types_.push_back(std::move(type));
    }
  }

  // The two directions of a PCIe link, and what caps both together.
  PciePort add_port(const std::string& name, const Node& type_name, LinkKind kind) {
    const PcieType& type = pcie_types_[pcie_names_.find(type_name)];
    PciePort port;
    port.down = add_link(name + ".down", kind, type.down);
    port.up = add_link(name + ".up", kind, type.up);
    if (type.duplex) port.duplex = add_link(name + ".duplex", LinkKind::pcie_duplex, *type.duplex);
    return port;
  }

  void read_sockets() {
    for (const Node& node : nonempty_list(root_, "sockets", "a machine has at least one")) {
      node.allow_keys({"name", "cores", "numa_nodes", "memory_bytes", "reserves",
                       "dram_bytes_per_s", "optimizer_bytes_per_s"});
      Socket socket;
      socket.name = socket_names_.define(node);
      socket.cores = static_cast<int>(node.at("cores").integer(1, kMostCores));
      for (const Node& numa : node.at("numa_nodes").items()) {
        socket.numa_nodes.push_back(static_cast<int>(numa.integer(0, kMostCores)));
      }
      socket.optimizer_core_time_per_parameter = {{0.0}, "not on cores", Confidence::high};
      socket.pool = machine_.pools.size();
      Pool pool{fmt::format("host{}", machine_.sockets.size()),
                PoolKind::host,
                read_sourced_bytes(node.at("memory_bytes")),
                {}};
      if (const auto reserves = node.find("reserves")) pool.reserves = read_reserves(*reserves);
      check_room(node, pool);
      machine_.pools.push_back(std::move(pool));
      ports_.dram.push_back(add_link(socket.name + ".dram", LinkKind::dram,
                                     read_sourced_rate(node.at("dram_bytes_per_s"))));
      ports_.optimizer_cap.emplace_back();
      if (const auto cap = node.find("optimizer_bytes_per_s")) {
        ports_.optimizer_cap.back() =
            add_link(socket.name + ".optimizer", LinkKind::dram, read_sourced_rate(*cap), true);
      }
      machine_.sockets.push_back(std::move(socket));
    }
    // No other pools exist yet.
    changes_.change(machine_.pools);
  }

  static void check_room(const Node& node, const Pool& pool) {
    Bytes taken;
    for (const Reserve& reserve : pool.reserves) taken += reserve.bytes.value;
    if (taken < pool.capacity.value) return;
    throw node.error(fmt::format("reserves take {} of {} bytes, and nothing is left", taken.value,
                                 pool.capacity.value.value));
  }

  void read_socket_links() {
    const auto list = root_.find("socket_links");
    for (const Node& node : list ? list->items() : std::vector<Node>{}) {
      node.allow_keys({"between", "bytes_per_s"});
      const Node between = node.at("between");
      const auto ends = between.items();
      if (ends.size() != 2) throw between.error("expected the names of two sockets");
      const std::size_t a = socket_names_.find(ends[0]), b = socket_names_.find(ends[1]);
      if (a == b) throw between.error("expected two different sockets");
      const auto rate = read_sourced_rate(node.at("bytes_per_s"));
      for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
        const std::string name =
            fmt::format("{}-to-{}", machine_.sockets[from].name, machine_.sockets[to].name);
        if (!ports_.socket_links.emplace(std::pair{from, to}, machine_.links.size()).second) {
          throw between.error("these two sockets are linked already; keep one link");
        }
        add_link(name, LinkKind::socket_link, rate);
      }
    }
    for (std::size_t a = 0; a < machine_.sockets.size(); ++a) {
      for (std::size_t b = a + 1; b < machine_.sockets.size(); ++b) {
        if (ports_.socket_links.contains({a, b})) continue;
        throw root_.error(fmt::format("no link joins {} and {}; add one to socket_links",
                                      machine_.sockets[a].name, machine_.sockets[b].name));
      }
    }
  }

  void read_switches() {
    const auto list = root_.find("switches");
    const auto nodes = list ? list->items() : std::vector<Node>{};
    for (const Node& node : nodes) {
      node.allow_keys({"name", "parent", "link"});
      Switch entry;
      entry.name = switch_names_.define(node);
      if (socket_names_.contains(entry.name)) {
        throw node.error(fmt::format("'{}' is the name of a socket; rename one", entry.name));
      }
      const PciePort port = add_port(entry.name, node.at("link"), LinkKind::pcie_uplink);
      entry.down = port.down;
      entry.up = port.up;
      entry.duplex = port.duplex;
      machine_.switches.push_back(std::move(entry));
    }
    // A second pass: a switch may hang under one that is listed after it.
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const Node parent = nodes[i].at("parent");
      if (!socket_names_.contains(parent.text())) {
        machine_.switches[i].parent = find_switch(parent);
      } else {
        machine_.switches[i].socket = socket_names_.find(parent);
      }
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) follow_parents(i, nodes[i]);
  }

  std::size_t find_switch(const Node& reference) const {
    if (switch_names_.contains(reference.text())) return switch_names_.find(reference);
    auto known = socket_names_.names();
    for (const auto& name : switch_names_.names()) known.push_back(name);
    const auto nearest = nearest_match(reference.text(), known);
    throw reference.error(fmt::format(
        "no socket or switch is named '{}'{}; known: {}", reference.text(),
        nearest ? fmt::format(", did you mean '{}'?", *nearest) : "", fmt::join(known, ", ")));
  }

  // Finds the socket a switch hangs under at last.
  void follow_parents(std::size_t start, const Node& node) {
    std::string chain = machine_.switches[start].name;
    std::size_t at = start;
    std::size_t steps = 0;
    while (machine_.switches[at].parent) {
      at = *machine_.switches[at].parent;
      chain += " -> " + machine_.switches[at].name;
      if (at == start || ++steps > machine_.switches.size()) {
        throw node.at("parent").error(
            fmt::format("the parents form a cycle: {}; the chain must end at a socket", chain));
      }
    }
    machine_.switches[start].socket = machine_.switches[at].socket;
  }

  Parent read_parent(const Node& node) const {
    const Node parent = node.at("parent");
    if (socket_names_.contains(parent.text())) return {socket_names_.find(parent), std::nullopt};
    const std::size_t found = find_switch(parent);
    return {machine_.switches[found].socket, found};
  }

  void read_gpus() {
    Names names("GPU");
    const auto nodes =
        changes_.keep_gpus(nonempty_list(root_, "gpus", "a machine has at least one GPU"));
    for (const Node& node : nodes) {
      node.allow_keys({"name", "model", "parent", "link", "numa_node", "speed"});
      Gpu gpu;
      gpu.name = names.define(node);
      gpu.model = model_names_.find(node.at("model"));
      const Parent parent = read_parent(node);
      gpu.socket = parent.socket;
      gpu.pcie_switch = parent.pcie_switch;
      if (const auto numa = node.find("numa_node")) gpu.numa_node = read_numa(*numa, gpu.socket);
      if (const auto speed = node.find("speed")) gpu.speed = speed->number(0.01, 100.0);
      gpu.pool = machine_.pools.size();
      machine_.pools.push_back(gpu_pool(gpu, nodes.size()));
      check_room(changes_.gpu_memory_place().value_or(node), machine_.pools.back());
      ports_.gpus.push_back(add_port(gpu.name + ".pcie", node.at("link"), LinkKind::pcie));
      machine_.gpus.push_back(std::move(gpu));
    }
  }

  int read_numa(const Node& node, std::size_t socket) const {
    const int numa = static_cast<int>(node.integer(0, kMostCores));
    const auto& allowed = machine_.sockets[socket].numa_nodes;
    if (std::find(allowed.begin(), allowed.end(), numa) == allowed.end()) {
      throw node.error(fmt::format("{} has no NUMA node {}; it has {}",
                                   machine_.sockets[socket].name, numa, fmt::join(allowed, ", ")));
    }
    return numa;
  }

  Pool gpu_pool(const Gpu& gpu, std::size_t gpus) const {
    const GpuModel& model = machine_.gpu_models[gpu.model];
    Pool pool{gpu.name, PoolKind::gpu, model.memory, {}};
    if (model.context_bytes.value.value > 0) {
      pool.reserves.push_back({"context and kernels", model.context_bytes});
    }
    // A GPU alone has nobody to talk to, and the collective library is never started.
    if (model.collective_bytes.value.value > 0 && gpus > 1) {
      pool.reserves.push_back({kCollectiveLibrary, model.collective_bytes});
    }
    const auto& others = model_reserves_[gpu.model];
    pool.reserves.insert(pool.reserves.end(), others.begin(), others.end());
    return pool;
  }

  void read_collective_network() {
    if (const auto node = root_.find("nvswitch")) {
      node->allow_keys({"port_bytes_per_s"});
      const auto rate = read_sourced_rate(node->at("port_bytes_per_s"));
      for (const Gpu& gpu : machine_.gpus) {
        for (const char* direction : {".nvlink.out", ".nvlink.in"}) {
          ports_.nvswitch.push_back(add_link(gpu.name + direction, LinkKind::nvswitch_port, rate));
        }
      }
    }
    if (machine_.gpus.size() > 1 || root_.find("collectives")) {
      machine_.collectives = read_collectives(root_.at("collectives"));
    }
    const std::size_t measured = root_.at("gpus").items().size(), kept = machine_.gpus.size();
    if (kept > 1 && kept < measured) scale_collectives(measured, kept);
  }

  // The curves are of all GPUs in the file. Fewer of them have the same bus bandwidth, as
  // nccl-tests defines it: each sends and receives (n-1)/n of the buffer.
  void scale_collectives(std::size_t measured, std::size_t kept) {
    const auto part = [](std::size_t n) {
      return static_cast<double>(n - 1) / static_cast<double>(n);
    };
    for (CollectiveCurve& curve : machine_.collectives) {
      for (auto& [bytes, time] : curve.points.value) time = time * (part(kept) / part(measured));
      curve.points.source +=
          fmt::format("; for {} of {} GPUs at the same bus bandwidth", kept, measured);
    }
  }

  void read_drives() {
    Names model_names("drive model"), names("drive");
    std::vector<DriveModel> models;
    const auto model_list = root_.find("drive_models");
    for (const Node& node : model_list ? model_list->items() : std::vector<Node>{}) {
      node.allow_keys({"name", "capacity_bytes", "read_bytes_per_s", "write_bytes_per_s"});
      model_names.define(node);
      models.push_back({read_sourced_bytes(node.at("capacity_bytes")),
                        read_sourced_rate(node.at("read_bytes_per_s")),
                        read_sourced_rate(node.at("write_bytes_per_s"))});
    }
    const auto list = root_.find("drives");
    for (const Node& node : changes_.keep_drives(list ? list->items() : std::vector<Node>{})) {
      node.allow_keys({"name", "model", "parent"});
      Drive drive;
      drive.name = names.define(node);
      const DriveModel& model = models[model_names.find(node.at("model"))];
      const Parent parent = read_parent(node);
      drive.socket = parent.socket;
      drive.pcie_switch = parent.pcie_switch;
      drive.pool = machine_.pools.size();
      machine_.pools.push_back({drive.name, PoolKind::nvme, model.capacity, {}});
      DrivePort port;
      port.read = add_link(drive.name + ".read", LinkKind::nvme, model.read);
      port.write = add_link(drive.name + ".write", LinkKind::nvme, model.write);
      ports_.drives.push_back(port);
      machine_.drives.push_back(std::move(drive));
    }
  }

  Node root_;
  NodeChanges changes_;
  Machine machine_;
  Ports ports_;
  Names model_names_{"GPU model"}, pcie_names_{"PCIe link"}, socket_names_{"socket"},
      switch_names_{"switch"};
  std::vector<std::vector<Reserve>> model_reserves_;  // by GPU model
  std::vector<PcieType> pcie_types_;
};

}  // namespace

Machine read_node_machine(const Node& root, const NodeChanges& changes) {
  return NodeReader(root, changes).read();
}

}  // namespace offstage::platform
