#include "scheduler/explain.h"

#include <algorithm>
#include <functional>
#include <span>

#include "scheduler/metrics.h"
#include "scheduler/plan_estimate.h"

namespace offstage::scheduler {

using platform::Bytes;
using platform::Link;
using platform::LinkKind;
using platform::Seconds;

namespace {

std::string resource_of(const Link& link) {
  const std::string direction = link.name.ends_with(".down") ? " down" : " up";
  switch (link.kind) {
    case LinkKind::pcie:
      return "PCIe port" + direction;
    case LinkKind::pcie_uplink:
      return "PCIe uplink" + direction;
    case LinkKind::pcie_duplex:
      return "PCIe both ways";
    case LinkKind::dram:
      return "DRAM";
    case LinkKind::socket_link:
      return "link between sockets";
    case LinkKind::nvswitch_port:
      return "NVLink port";
    case LinkKind::cores:
      return "CPU cores";
    case LinkKind::network:
      return "network between hosts";
    case LinkKind::nvme:
      return link.name.ends_with(".read") ? "NVMe reading" : "NVMe writing";
  }
  return link.name;
}

std::string resource_of(const Engine& engine) {
  switch (engine.kind) {
    case EngineKind::compute:
      return "GPU compute";
    case EngineKind::h2d:
      return "copies to a GPU";
    case EngineKind::d2h:
      return "copies from a GPU";
    case EngineKind::collective:
      return "collectives";
    case EngineKind::optimizer:
      return "CPU optimizer";
    case EngineKind::nvme_read:
      return "NVMe read queue";
    case EngineKind::nvme_write:
      return "NVMe write queue";
    case EngineKind::network:
      return "reductions over hosts";
  }
  return engine.name;
}

void keep_busiest(std::vector<ResourceBound>& bounds, const ResourceBound& bound) {
  if (!(bound.seconds.value > 0.0)) return;
  const auto same = std::ranges::find(bounds, bound.resource, &ResourceBound::resource);
  if (same == bounds.end()) {
    bounds.push_back(bound);
  } else if (same->seconds < bound.seconds) {
    *same = bound;
  }
}

}  // namespace

std::vector<ResourceBound> resource_bounds(const Plan& plan, const TaskGraph& graph,
                                           const std::vector<TaskCost>& costs) {
  const auto work = resource_work(plan.machine, graph, costs);
  const double per_step = 1.0 / static_cast<double>(graph.steps);
  const std::size_t engines = graph.engines.size();
  std::vector<ResourceBound> bounds;
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (i < engines) {
      const Engine& engine = graph.engines[i];
      keep_busiest(bounds, {resource_of(engine), engine.name, work[i] * per_step});
    } else {
      const Link& link = plan.machine.links[i - engines];
      keep_busiest(bounds, {resource_of(link), link.name, work[i] * per_step});
    }
  }
  keep_busiest(bounds, {"critical path", "chain of tasks", chain_pace(plan.machine, graph, costs)});
  std::ranges::stable_sort(bounds, std::ranges::greater(), &ResourceBound::seconds);
  return bounds;
}

std::vector<NumaShare> numa_shares(const Plan& plan) {
  std::vector<NumaShare> shares;
  for (const auto& socket : plan.machine.sockets) {
    const std::size_t nodes = socket.numa_nodes.size();
    if (nodes < 2) continue;
    const auto& pool = plan.memory.pools[socket.pool];
    const auto share = [nodes](Bytes whole) {
      return Bytes{whole.value / static_cast<std::int64_t>(nodes)};
    };
    shares.push_back({pool.name, nodes, share(pool.total()), share(pool.capacity)});
  }
  return shares;
}

// An outlook is worth a part of the search that a plan to be run is.
constexpr SearchEffort kOutlook{.finalists = 4, .tasks = SearchEffort{}.tasks / 4};

std::vector<BatchOutlook> larger_batches(const PlanningInput& input, const Evaluate& evaluate,
                                         double target, int doublings) {
  std::vector<BatchOutlook> outlook;
  workloads::Workload workload = input.workload;
  StrategyRequest request = input.request;
  for (int i = 0; i < doublings; ++i) {
    workload.global_batch *= 2;
    if (request.shares) {
      for (auto& share : *request.shares) share *= 2;
    }
    const auto result = choose_plan({.machine = input.machine,
                                     .workload = workload,
                                     .profile = input.profile,
                                     .request = request},
                                    evaluate, kOutlook);
    if (!result.fits) break;
    // The search reads long steps off a line through shorter ones; what is told is evaluated. After
    // a simulation's last step nothing comes that its updates could disturb, so that it may end
    // sooner than any pace that lasts.
    const Seconds bound = estimated_bound(result.plan, input.profile).seconds;
    const Seconds step = std::max(bound, evaluate(std::span(&result.plan, 1)).front());
    outlook.push_back({workload.global_batch, step, bound / step});
    if (outlook.back().efficiency >= target) break;
  }
  return outlook;
}

}  // namespace offstage::scheduler
