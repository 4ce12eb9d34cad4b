#include "platform/changed_machine.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace offstage::platform {
namespace {

template <typename T>
void mark_changed(Sourced<T>& number, double factor) {
  number.source = fmt::format("assumed, {:g} times: {}", factor, number.source);
  number.confidence = Confidence::assumed;
}

// "gpu7.pcie.down" belongs to gpu7.
bool belongs_to(const Link& link, const std::string& gpu) {
  return link.name.starts_with(gpu + ".");
}

// Copies the last GPU; a class because its parts refer to each other by index.
class GpuCopier {
 public:
  explicit GpuCopier(const Machine& machine)
      : machine_(machine),
        from_(machine.gpus.back().name),
        to_(fmt::format("gpu{}", machine.gpus.size())) {}

  Machine copy() {
    copy_links();
    Gpu gpu = machine_.gpus.back();
    gpu.name = to_;
    Pool pool = machine_.pools[gpu.pool];
    pool.name = to_;
    machine_.pools.push_back(std::move(pool));
    gpu.pool = machine_.pools.size() - 1;
    for (auto* routes : {&gpu.h2d, &gpu.d2h}) {
      for (RouteId& route : *routes) route = copy_route(route);
    }
    machine_.gpus.push_back(std::move(gpu));
    if (machine_.collective_route) extend(machine_.routes[*machine_.collective_route]);
    if (!machine_.collective_ports.empty()) copy_ports();
    return std::move(machine_);
  }

 private:
  std::string renamed(const std::string& name) const {
    return name.starts_with(from_) ? to_ + name.substr(from_.size()) : to_ + "." + name;
  }

  void copy_links() {
    const std::size_t count = machine_.links.size();
    for (LinkId id = 0; id < count; ++id) {
      if (!belongs_to(machine_.links[id], from_)) continue;
      Link link = machine_.links[id];
      link.name = renamed(link.name);
      machine_.links.push_back(std::move(link));
      own_[id] = machine_.links.size() - 1;
    }
  }

  RouteId copy_route(RouteId id) {
    Route route = machine_.routes[id];
    route.name = renamed(route.name);
    for (LinkId& link : route.links) {
      if (const auto own = own_.find(link); own != own_.end()) link = own->second;
    }
    machine_.routes.push_back(std::move(route));
    return machine_.routes.size() - 1;
  }

  void copy_ports() {
    auto ports = machine_.collective_ports.back();
    for (LinkId& link : ports) link = own_.contains(link) ? own_.at(link) : link;
    machine_.collective_ports.push_back(std::move(ports));
  }

  // A collective passes the new GPU's links where it passes the old one's.
  void extend(Route& route) const {
    std::vector<LinkId> more;
    for (const LinkId link : route.links) {
      if (const auto own = own_.find(link); own != own_.end()) more.push_back(own->second);
    }
    route.links.insert(route.links.end(), more.begin(), more.end());
  }

  Machine machine_;
  std::string from_, to_;
  std::map<LinkId, LinkId> own_;  // the old GPU's links to the new one's
};

}  // namespace

bool is_pcie(LinkKind kind) {
  return kind == LinkKind::pcie || kind == LinkKind::pcie_uplink || kind == LinkKind::pcie_duplex;
}

void scale_capacity(Link& link, double factor) {
  link.capacity.value.value *= factor;
  mark_changed(link.capacity, factor);
}

Machine with_memory(const Machine& machine, PoolKind kind, int factor) {
  Machine changed = machine;
  for (Pool& pool : changed.pools) {
    if (pool.kind != kind) continue;
    pool.capacity.value = pool.capacity.value * factor;
    mark_changed(pool.capacity, factor);
  }
  return changed;
}

std::optional<Machine> with_pcie(const Machine& machine, int factor) {
  const auto pcie = [](const Link& link) { return is_pcie(link.kind); };
  if (std::ranges::none_of(machine.links, pcie)) return std::nullopt;
  Machine changed = machine;
  for (Link& link : changed.links) {
    if (pcie(link)) scale_capacity(link, factor);
  }
  return changed;
}

std::optional<Machine> with_another_gpu(const Machine& machine) {
  if (machine.gpus.size() < 2) return std::nullopt;
  return GpuCopier(machine).copy();
}

}  // namespace offstage::platform
