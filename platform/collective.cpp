#include "platform/collective.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::platform {
namespace {

// Straight in log-log between two points: a collective's time is flat for small sizes and in
// proportion for large ones, and both are straight lines there.
double between(const std::pair<Bytes, Seconds>& low, const std::pair<Bytes, Seconds>& high,
               double bytes) {
  const double low_bytes = static_cast<double>(low.first.value);
  const double high_bytes = static_cast<double>(high.first.value);
  const double part = std::log(bytes / low_bytes) / std::log(high_bytes / low_bytes);
  return low.second.value * std::pow(high.second.value / low.second.value, part);
}

}  // namespace

Seconds collective_time(const Machine& machine, CollectiveKind kind, Bytes bytes) {
  const auto curve = std::find_if(machine.collectives.begin(), machine.collectives.end(),
                                  [&](const CollectiveCurve& known) { return known.kind == kind; });
  OFFSTAGE_CHECK(curve != machine.collectives.end() && !curve->points.value.empty(),
                 "the machine has no curve for this collective: " + machine.name);
  if (bytes.value <= 0) return {0.0};
  const auto& points = curve->points.value;
  const auto above = std::find_if(points.begin(), points.end(),
                                  [&](const auto& point) { return point.first >= bytes; });
  if (above == points.begin()) return above->second;
  if (above == points.end()) {
    const auto& last = points.back();
    return last.second * (static_cast<double>(bytes.value) / static_cast<double>(last.first.value));
  }
  return {between(*(above - 1), *above, static_cast<double>(bytes.value))};
}

Seconds collective_time(const Machine& machine, CollectiveKind kind, Bytes bytes,
                        std::size_t gpus) {
  const auto part = [](std::size_t n) {
    return static_cast<double>(n - 1) / static_cast<double>(n);
  };
  return collective_time(machine, kind, bytes) * (part(gpus) / part(machine.gpus.size()));
}

RouteId add_group_route(Machine& machine, std::size_t first, std::size_t count) {
  std::vector<std::size_t> gpus(count);
  std::iota(gpus.begin(), gpus.end(), first);
  return add_group_route(machine, gpus);
}

RouteId add_group_route(Machine& machine, std::span<const std::size_t> gpus) {
  OFFSTAGE_CHECK(machine.collective_route.has_value(), "no collectives on " + machine.name);
  Route route{fmt::format("collective of GPUs {}", fmt::join(gpus, ", ")), {}, {0.0}};
  if (machine.collective_ports.empty()) {
    route.links = machine.routes[*machine.collective_route].links;
  }
  for (const std::size_t gpu : gpus) {
    if (machine.collective_ports.empty()) break;
    const auto& ports = machine.collective_ports[gpu];
    route.links.insert(route.links.end(), ports.begin(), ports.end());
  }
  if (machine.gpus[gpus.front()].compute_route) {
    // Virtual GPUs: what the group computes and what it brings together are one flow over as many
    // cores as it has GPUs, where a flow of one GPU is capped at one.
    std::erase_if(route.links, [&](LinkId link) { return machine.links[link].caps_each_flow; });
    constexpr double kOneCore = 1e9;  // core-nanoseconds in a second
    machine.links.push_back(
        {fmt::format("{} cores", gpus.size()),
         LinkKind::cores,
         {{kOneCore * static_cast<double>(gpus.size())}, "a thread for each GPU", Confidence::high},
         true});
    route.links.push_back(machine.links.size() - 1);
  }
  std::sort(route.links.begin(), route.links.end());
  route.links.erase(std::unique(route.links.begin(), route.links.end()), route.links.end());
  machine.routes.push_back(std::move(route));
  return machine.routes.size() - 1;
}

}  // namespace offstage::platform
