#include "platform/node_routes.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace offstage::platform {
namespace {

enum class Direction { down, up };

class RouteBuilder {
 public:
  RouteBuilder(Machine& machine, const Ports& ports) : machine_(machine), ports_(ports) {}

  void build() {
    for (std::size_t g = 0; g < machine_.gpus.size(); ++g) {
      Gpu& gpu = machine_.gpus[g];
      for (std::size_t s = 0; s < machine_.sockets.size(); ++s) {
        gpu.h2d.push_back(add_gpu_route(g, s, Direction::down));
        gpu.d2h.push_back(add_gpu_route(g, s, Direction::up));
      }
    }
    for (std::size_t d = 0; d < machine_.drives.size(); ++d) {
      Drive& drive = machine_.drives[d];
      for (std::size_t s = 0; s < machine_.sockets.size(); ++s) {
        // Reading a drive moves data up to memory, writing moves it down.
        drive.read.push_back(add_drive_route(d, s, Direction::up));
        drive.write.push_back(add_drive_route(d, s, Direction::down));
      }
    }
    for (std::size_t s = 0; s < machine_.sockets.size(); ++s) add_optimizer_route(s);
    if (machine_.gpus.size() > 1) add_collective_route();
  }

 private:
  RouteId add_route(std::string name, std::vector<LinkId> links, Seconds latency) {
    machine_.routes.push_back({std::move(name), std::move(links), latency});
    return machine_.routes.size() - 1;
  }

  // Between the memory of socket `memory` and a device below `pcie_switch` of socket `home`.
  std::vector<LinkId> path(std::size_t memory, std::size_t home,
                           std::optional<std::size_t> pcie_switch, Direction direction) const {
    std::vector<LinkId> links{ports_.dram[memory]};
    if (memory != home) {
      links.push_back(direction == Direction::down ? ports_.socket_links.at({memory, home})
                                                   : ports_.socket_links.at({home, memory}));
    }
    std::vector<std::size_t> chain;  // from the device up to the socket
    for (auto at = pcie_switch; at; at = machine_.switches[*at].parent) chain.push_back(*at);
    std::reverse(chain.begin(), chain.end());
    for (const std::size_t index : chain) {
      const Switch& entry = machine_.switches[index];
      add_port(links, {entry.down, entry.up, entry.duplex}, direction);
    }
    return links;
  }

  static void add_port(std::vector<LinkId>& links, const PciePort& port, Direction direction) {
    links.push_back(direction == Direction::down ? port.down : port.up);
    if (port.duplex) links.push_back(*port.duplex);
  }

  RouteId add_gpu_route(std::size_t index, std::size_t memory, Direction direction) {
    const Gpu& gpu = machine_.gpus[index];
    auto links = path(memory, gpu.socket, gpu.pcie_switch, direction);
    add_port(links, ports_.gpus[index], direction);
    const char* name = direction == Direction::down ? "h2d" : "d2h";
    return add_route(fmt::format("{}.{}.{}", gpu.name, name, machine_.sockets[memory].name),
                     std::move(links), machine_.copy_latency.value);
  }

  RouteId add_drive_route(std::size_t index, std::size_t memory, Direction direction) {
    const Drive& drive = machine_.drives[index];
    auto links = path(memory, drive.socket, drive.pcie_switch, direction);
    const DrivePort& port = ports_.drives[index];
    links.push_back(direction == Direction::down ? port.write : port.read);
    const char* name = direction == Direction::down ? "write" : "read";
    return add_route(fmt::format("{}.{}.{}", drive.name, name, machine_.sockets[memory].name),
                     std::move(links), machine_.copy_latency.value);
  }

  void add_optimizer_route(std::size_t index) {
    std::vector<LinkId> links;
    if (ports_.optimizer_cap[index]) links.push_back(*ports_.optimizer_cap[index]);
    links.push_back(ports_.dram[index]);
    Socket& socket = machine_.sockets[index];
    socket.optimizer = add_route(socket.name + ".optimizer", std::move(links), {0.0});
  }

  // Without NVSwitch, collectives go over PCIe: every link of every GPU's way home, once.
  void add_collective_route() {
    constexpr std::size_t kPortsPerGpu = 2;  // out and in
    std::vector<LinkId> all;
    for (std::size_t g = 0; g < machine_.gpus.size(); ++g) {
      const Gpu& gpu = machine_.gpus[g];
      std::vector<LinkId> links;
      if (!ports_.nvswitch.empty()) {
        const auto first = ports_.nvswitch.begin() + static_cast<std::ptrdiff_t>(kPortsPerGpu * g);
        links.assign(first, first + kPortsPerGpu);
      } else {
        for (const RouteId route : {gpu.h2d[gpu.socket], gpu.d2h[gpu.socket]}) {
          const auto& more = machine_.routes[route].links;
          links.insert(links.end(), more.begin(), more.end());
        }
      }
      all.insert(all.end(), links.begin(), links.end());
      machine_.collective_ports.push_back(distinct(std::move(links)));
    }
    machine_.collective_route = add_route("collective", distinct(std::move(all)), {0.0});
  }

  static std::vector<LinkId> distinct(std::vector<LinkId> links) {
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    return links;
  }

  Machine& machine_;
  const Ports& ports_;
};

}  // namespace

void add_routes(Machine& machine, const Ports& ports) { RouteBuilder(machine, ports).build(); }

}  // namespace offstage::platform
