#include "platform/describe.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "platform/collective.h"
#include "platform/describe_parts.h"
#include "platform/format.h"
#include "platform/sourced_reader.h"

namespace offstage::platform {
namespace {

// A core-nanosecond a nanosecond is a core.
std::string rate_text(const Link& link) {
  if (link.kind != LinkKind::cores) return to_text(link.capacity.value);
  const double cores = link.capacity.value.value / 1e9;
  return fmt::format("{:.3g} core{}", cores, cores == 1.0 ? "" : "s");
}

// Lines of a tree, drawn with the branches of whatever holds them.
class Tree {
 public:
  struct Item {
    std::string text;
    std::vector<Item> below;
  };
  static std::string draw(const Item& root) {
    std::string text = root.text + "\n";
    draw_below(root, "", text);
    return text;
  }

 private:
  static void draw_below(const Item& item, const std::string& indent, std::string& text) {
    for (std::size_t i = 0; i < item.below.size(); ++i) {
      const bool last = i + 1 == item.below.size();
      text += indent + (last ? "`-- " : "|-- ") + item.below[i].text + "\n";
      draw_below(item.below[i], indent + (last ? "    " : "|   "), text);
    }
  }
};

std::string sources_table(const Machine& machine) {
  std::string text = "\nsources\n";
  for (const SourceLine& line : source_lines(machine)) {
    text += fmt::format("  {:<44} {:>14}  {:<8}  {}\n", line.what, line.value,
                        to_string(line.confidence), line.source);
  }
  return text;
}

class Describer {
 public:
  explicit Describer(const Machine& machine) : machine_(machine) {}

  std::string tree() const {
    Tree::Item root{fmt::format("{}: {}", machine_.name, machine_.description), {}};
    for (std::size_t s = 0; s < machine_.sockets.size(); ++s) root.below.push_back(socket(s));
    add_network(root);
    return Tree::draw(root);
  }

  std::string pools() const {
    std::string text = "\nmemory                  capacity    reserved        free\n";
    for (const Pool& pool : machine_.pools) {
      Bytes reserved;
      for (const Reserve& reserve : pool.reserves) reserved += reserve.bytes.value;
      text +=
          fmt::format("  {:<18} {:>11} {:>11} {:>11}\n", pool.name, to_text(pool.capacity.value),
                      to_text(reserved), to_text(pool.capacity.value - reserved));
    }
    return text;
  }

  std::string engines() const {
    std::string text = "\nengines, each one task at a time\n";
    for (const auto& [device, names] : device_engines(machine_)) {
      text += fmt::format("  {:<18} {}\n", device, fmt::join(names, ", "));
    }
    return text;
  }

  std::string models() const {
    std::string text = "\nmodels of GPU\n";
    for (const GpuModel& model : machine_.gpu_models) {
      text += fmt::format(
          "  {}: {}, peak {} bf16 and {} f32, memory {},\n    {} between launches ({}), {} GEMM "
          "and "
          "{} attention rates\n",
          model.name, to_text(model.memory.value),
          model.peak_bf16.value.value > 0.0 ? to_text(model.peak_bf16.value) : "no",
          to_text(model.peak_f32.value), to_text(model.memory_bandwidth.value),
          to_text(model.launch_interval.value),
          model.launches_overlap ? "hidden behind kernels" : "added to each operation",
          model.gemm.value.size(), model.attention.value.size());
    }
    return text;
  }

  std::string routes() const {
    std::string text = "\nroutes\n";
    for (const Route& route : machine_.routes) {
      std::vector<std::string> names;
      for (const LinkId link : route.links) names.push_back(machine_.links[link].name);
      text += fmt::format("  {:<24} {}\n", route.name, fmt::join(names, ", "));
    }
    return text;
  }

 private:
  std::string route_rate(RouteId route) const {
    const auto& links = machine_.routes[route].links;
    const auto narrowest = std::min_element(links.begin(), links.end(), [&](LinkId a, LinkId b) {
      return machine_.links[a].capacity.value < machine_.links[b].capacity.value;
    });
    return rate_text(machine_.links[*narrowest]);
  }

  Tree::Item socket(std::size_t index) const {
    const Socket& socket = machine_.sockets[index];
    Tree::Item item{fmt::format("{}: {} cores, NUMA {}, {} of memory", socket.name, socket.cores,
                                fmt::join(socket.numa_nodes, " "),
                                to_text(machine_.pools[socket.pool].capacity.value)),
                    {}};
    if (has_virtual_gpus(machine_)) {
      item.below.push_back(
          {fmt::format("{}.optimizer: {} of core time a parameter, {} thread(s)", socket.name,
                       to_text(socket.optimizer_core_time_per_parameter.value),
                       socket.optimizer_threads),
           {}});
    } else {
      item.below.push_back(
          {fmt::format("{}.optimizer: {}", socket.name, route_rate(socket.optimizer)), {}});
    }
    add_devices(item, index, std::nullopt);
    return item;
  }

  // Switches, GPUs and drives directly below a switch, or below a socket where `parent` is absent.
  void add_devices(Tree::Item& item, std::size_t socket, std::optional<std::size_t> parent) const {
    for (std::size_t s = 0; s < machine_.switches.size(); ++s) {
      const Switch& entry = machine_.switches[s];
      if (entry.socket != socket || entry.parent != parent) continue;
      Tree::Item below{
          fmt::format("{}: uplink {} down, {} up{}", entry.name,
                      rate_text(machine_.links[entry.down]), rate_text(machine_.links[entry.up]),
                      entry.duplex ? fmt::format(", {} both ways together",
                                                 rate_text(machine_.links[*entry.duplex]))
                                   : ""),
          {}};
      add_devices(below, socket, s);
      item.below.push_back(std::move(below));
    }
    for (const Gpu& gpu : machine_.gpus) {
      if (gpu.socket == socket && gpu.pcie_switch == parent) item.below.push_back(gpu_item(gpu));
    }
    for (const Drive& drive : machine_.drives) {
      if (drive.socket != socket || drive.pcie_switch != parent) continue;
      item.below.push_back(
          {fmt::format("{}: {}, read {}, write {}", drive.name,
                       to_text(machine_.pools[drive.pool].capacity.value),
                       route_rate(drive.read[socket]), route_rate(drive.write[socket])),
           {}});
    }
  }

  Tree::Item gpu_item(const Gpu& gpu) const {
    const std::string speed = gpu.speed == 1.0 ? "" : fmt::format(", speed {:g}", gpu.speed);
    const std::string numa = gpu.numa_node ? fmt::format(", NUMA {}", *gpu.numa_node) : "";
    const std::string copies =
        has_virtual_gpus(machine_)
            ? fmt::format("copies {} a core", to_text(machine_.core_copy_rate->value))
            : fmt::format("{} down, {} up", route_rate(gpu.h2d[gpu.socket]),
                          route_rate(gpu.d2h[gpu.socket]));
    return {fmt::format("{}: {}, {}, {}{}{}", gpu.name, machine_.gpu_models[gpu.model].name,
                        to_text(machine_.pools[gpu.pool].capacity.value), copies, numa, speed),
            {}};
  }

  void add_network(Tree::Item& root) const {
    for (const Link& link : machine_.links) {
      if (link.kind == LinkKind::socket_link || link.kind == LinkKind::cores) {
        root.below.push_back({fmt::format("{}: {}{}", link.name, rate_text(link),
                                          link.caps_each_flow ? ", caps each task" : ""),
                              {}});
      }
    }
    if (machine_.network_route) {
      root.below.push_back({fmt::format("one of {} hosts: {} each way over the network",
                                        machine_.hosts, route_rate(*machine_.network_route)),
                            {}});
    }
    if (!machine_.collective_route) return;
    const Bytes gigabyte{1'000'000'000};
    Tree::Item item{fmt::format("collectives: {} links, narrowest {}",
                                machine_.routes[*machine_.collective_route].links.size(),
                                route_rate(*machine_.collective_route)),
                    {}};
    for (const CollectiveCurve& curve : machine_.collectives) {
      item.below.push_back({fmt::format("{} of 1 GB: {}", to_string(curve.kind),
                                        to_text(collective_time(machine_, curve.kind, gigabyte))),
                            {}});
    }
    root.below.push_back(std::move(item));
  }

  const Machine& machine_;
};

}  // namespace

std::string describe_machine(const Machine& machine, const DescribeOptions& options) {
  const Describer describer(machine);
  std::string text =
      describer.tree() + describer.pools() + describer.engines() + describer.models();
  if (options.routes) text += describer.routes();
  if (options.sources) text += sources_table(machine);
  return text;
}

}  // namespace offstage::platform
