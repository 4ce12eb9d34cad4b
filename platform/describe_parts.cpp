#include "platform/describe_parts.h"

#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "platform/describe.h"
#include "platform/format.h"
#include "platform/sourced_reader.h"

namespace offstage::platform {
namespace {

using nlohmann::json;

std::string name_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::pcie:
      return "pcie";
    case LinkKind::pcie_uplink:
      return "pcie_uplink";
    case LinkKind::pcie_duplex:
      return "pcie_duplex";
    case LinkKind::dram:
      return "dram";
    case LinkKind::socket_link:
      return "socket_link";
    case LinkKind::nvswitch_port:
      return "nvswitch_port";
    case LinkKind::cores:
      return "cores";
    case LinkKind::nvme:
      return "nvme";
    case LinkKind::network:
      return "network";
  }
  OFFSTAGE_CHECK(false, "a kind of link without a name");
}

std::string name_of(PoolKind kind) {
  switch (kind) {
    case PoolKind::gpu:
      return "gpu";
    case PoolKind::host:
      return "host";
    case PoolKind::nvme:
      return "nvme";
  }
  OFFSTAGE_CHECK(false, "a kind of pool without a name");
}

template <typename T>
json origin(const Sourced<T>& number) {
  return {{"source", number.source}, {"confidence", to_string(number.confidence)}};
}

template <typename T>
json sourced(const Sourced<T>& number) {
  json object = origin(number);
  object["value"] = number.value.value;
  return object;
}

json model_json(const GpuModel& model) {
  json gemm = origin(model.gemm);
  for (const GemmPoint& point : model.gemm.value) {
    gemm["points"].push_back({{"precision", to_string(point.precision)},
                              {"m", point.m},
                              {"n", point.n},
                              {"k", point.k},
                              {"flops_per_s", point.rate.value}});
  }
  json attention = origin(model.attention);
  for (const AttentionPoint& point : model.attention.value) {
    attention["points"].push_back({{"precision", to_string(point.precision)},
                                   {"head_dim", point.head_dim},
                                   {"sequence_length", point.sequence_length},
                                   {"causal", point.causal},
                                   {"flops_per_s", point.rate.value}});
  }
  return {{"name", model.name},
          {"memory_bytes", sourced(model.memory)},
          {"context_bytes", sourced(model.context_bytes)},
          {"collective_bytes", sourced(model.collective_bytes)},
          {"peak_bf16_flops_per_s", sourced(model.peak_bf16)},
          {"peak_f32_flops_per_s", sourced(model.peak_f32)},
          {"memory_bandwidth_bytes_per_s", sourced(model.memory_bandwidth)},
          {"launch_interval_s", sourced(model.launch_interval)},
          {"launches_overlap", model.launches_overlap},
          {"gemm", std::move(gemm)},
          {"attention", std::move(attention)}};
}

json pool_json(const Pool& pool) {
  json reserves = json::array();
  for (const Reserve& reserve : pool.reserves) {
    reserves.push_back({{"what", reserve.what}, {"bytes", sourced(reserve.bytes)}});
  }
  return {{"name", pool.name},
          {"kind", name_of(pool.kind)},
          {"capacity_bytes", sourced(pool.capacity)},
          {"reserves", std::move(reserves)}};
}

class JsonWriter {
 public:
  explicit JsonWriter(const Machine& machine) : machine_(machine) {}

  json write() const {
    json object{{"name", machine_.name},
                {"description", machine_.description},
                {"file", machine_.file},
                {"default_profile", machine_.default_profile},
                {"copy_latency_s", sourced(machine_.copy_latency)}};
    for (const auto* key : {"pools", "engines", "gpu_models", "sockets", "switches", "gpus",
                            "drives", "links", "routes", "collectives"}) {
      object[key] = json::array();
    }
    for (const auto& pool : machine_.pools) object["pools"].push_back(pool_json(pool));
    for (const auto& model : machine_.gpu_models) object["gpu_models"].push_back(model_json(model));
    for (const auto& [device, names] : device_engines(machine_)) {
      for (const auto& name : names) object["engines"].push_back(device + "." + name);
    }
    add_devices(object);
    add_network(object);
    if (machine_.core_copy_rate) {
      object["core_copy_rate_bytes_per_s"] = sourced(*machine_.core_copy_rate);
    }
    if (machine_.copy_throttle) {
      object["copy_throttle_bytes_per_s"] = sourced(*machine_.copy_throttle);
    }
    return object;
  }

 private:
  json switch_name(const std::optional<std::size_t>& index) const {
    return index ? json(machine_.switches[*index].name) : json(nullptr);
  }

  void add_devices(json& object) const {
    for (const Socket& socket : machine_.sockets) {
      object["sockets"].push_back({{"name", socket.name},
                                   {"cores", socket.cores},
                                   {"numa_nodes", socket.numa_nodes},
                                   {"pool", machine_.pools[socket.pool].name},
                                   {"optimizer_route", machine_.routes[socket.optimizer].name}});
      if (!socket.optimizer_on_cores) continue;
      json& entry = object["sockets"].back();
      entry["optimizer_threads"] = socket.optimizer_threads;
      entry["optimizer_core_time_per_parameter_s"] =
          sourced(socket.optimizer_core_time_per_parameter);
    }
    for (const Switch& entry : machine_.switches) {
      object["switches"].push_back({{"name", entry.name},
                                    {"socket", machine_.sockets[entry.socket].name},
                                    {"parent", switch_name(entry.parent)}});
    }
    for (const Gpu& gpu : machine_.gpus) {
      object["gpus"].push_back({{"name", gpu.name},
                                {"model", machine_.gpu_models[gpu.model].name},
                                {"socket", machine_.sockets[gpu.socket].name},
                                {"switch", switch_name(gpu.pcie_switch)},
                                {"numa_node", gpu.numa_node ? json(*gpu.numa_node) : json(nullptr)},
                                {"pool", machine_.pools[gpu.pool].name},
                                {"speed", gpu.speed}});
    }
    for (const Drive& drive : machine_.drives) {
      object["drives"].push_back({{"name", drive.name},
                                  {"socket", machine_.sockets[drive.socket].name},
                                  {"switch", switch_name(drive.pcie_switch)},
                                  {"pool", machine_.pools[drive.pool].name}});
    }
  }

  void add_network(json& object) const {
    for (const Link& link : machine_.links) {
      object["links"].push_back({{"name", link.name},
                                 {"kind", name_of(link.kind)},
                                 {"capacity_per_s", sourced(link.capacity)},
                                 {"caps_each_flow", link.caps_each_flow}});
    }
    for (const Route& route : machine_.routes) {
      json links = json::array();
      for (const LinkId link : route.links) links.push_back(machine_.links[link].name);
      object["routes"].push_back(
          {{"name", route.name}, {"links", std::move(links)}, {"latency_s", route.latency.value}});
    }
    for (const CollectiveCurve& curve : machine_.collectives) {
      json entry = origin(curve.points);
      entry["kind"] = to_string(curve.kind);
      for (const auto& [size, time] : curve.points.value) {
        entry["points"].push_back({{"bytes", size.value}, {"seconds", time.value}});
      }
      object["collectives"].push_back(std::move(entry));
    }
  }

  const Machine& machine_;
};

std::string without_digits(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

// Collects numbers. Those of eight equal ports, alike but for the number in the name, make one
// line.
class SourceLines {
 public:
  template <typename T>
  void add(const std::string& what, const std::string& value, const Sourced<T>& number) {
    const auto [at, fresh] =
        known_.emplace(without_digits(what) + '\n' + value + '\n' + number.source, lines_.size());
    if (fresh) {
      lines_.push_back({what, value, number.source, number.confidence});
      return;
    }
    SourceLine& line = lines_[at->second];
    if (line.what.find(" and ") != std::string::npos) line.what.resize(line.what.find(" and "));
    line.what += fmt::format(" and {} more", ++repeats_[at->second]);
  }
  template <typename T>
  void add(const std::string& what, const Sourced<T>& number) {
    add(what, to_text(number.value), number);
  }
  std::vector<SourceLine> take() { return std::move(lines_); }

 private:
  std::vector<SourceLine> lines_;
  std::map<std::string, std::size_t> known_;
  std::map<std::size_t, int> repeats_;
};

}  // namespace

std::vector<DeviceEngines> device_engines(const Machine& machine) {
  std::vector<DeviceEngines> engines;
  for (const Gpu& gpu : machine.gpus) {
    engines.push_back({gpu.name, {"compute", "h2d", "d2h"}});
    if (machine.collective_route) engines.back().names.emplace_back("collective");
  }
  for (const Socket& socket : machine.sockets) engines.push_back({socket.name, {"optimizer"}});
  for (const Drive& drive : machine.drives) engines.push_back({drive.name, {"read", "write"}});
  if (machine.hosts > 1) engines.push_back({"hosts", {"network"}});
  return engines;
}

std::vector<SourceLine> source_lines(const Machine& machine) {
  SourceLines lines;
  for (const GpuModel& model : machine.gpu_models) {
    lines.add(model.name + " memory", model.memory);
    lines.add(model.name + " context and kernels", model.context_bytes);
    lines.add(model.name + " collective library", model.collective_bytes);
    lines.add(model.name + " peak bf16", model.peak_bf16);
    lines.add(model.name + " peak f32", model.peak_f32);
    lines.add(model.name + " memory bandwidth", model.memory_bandwidth);
    lines.add(model.name + " launch interval", model.launch_interval);
    lines.add(model.name + " GEMM rates", fmt::format("{} points", model.gemm.value.size()),
              model.gemm);
    lines.add(model.name + " attention rates",
              fmt::format("{} points", model.attention.value.size()), model.attention);
  }
  for (const Pool& pool : machine.pools) {
    lines.add(pool.name + " capacity", pool.capacity);
    for (const Reserve& reserve : pool.reserves) {
      lines.add(fmt::format("{}: {}", pool.name, reserve.what), reserve.bytes);
    }
  }
  for (const Link& link : machine.links) {
    const std::string value = link.kind == LinkKind::cores
                                  ? fmt::format("{:.3g} cores", link.capacity.value.value / 1e9)
                                  : to_text(link.capacity.value);
    lines.add(link.name, value, link.capacity);
  }
  lines.add("copy latency", machine.copy_latency);
  if (machine.core_copy_rate) lines.add("copy rate of a core", *machine.core_copy_rate);
  if (machine.copy_throttle) lines.add("copy throttle", *machine.copy_throttle);
  for (const Socket& socket : machine.sockets) {
    if (!socket.optimizer_on_cores) continue;
    lines.add(socket.name + " update of a parameter", socket.optimizer_core_time_per_parameter);
  }
  for (const CollectiveCurve& curve : machine.collectives) {
    lines.add(to_string(curve.kind), fmt::format("{} points", curve.points.value.size()),
              curve.points);
  }
  return lines.take();
}

json machine_json(const Machine& machine) { return JsonWriter(machine).write(); }

}  // namespace offstage::platform
