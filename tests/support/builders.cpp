#include "tests/support/builders.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace offstage::testing {

using scheduler::EngineId;
using scheduler::TaskCost;
using scheduler::TaskId;

platform::LinkId MachineBuilder::link(const std::string& name, double bytes_per_s,
                                      bool caps_each_flow) {
  platform::Link link;
  link.name = name;
  link.capacity.value = {bytes_per_s};
  link.caps_each_flow = caps_each_flow;
  machine_.links.push_back(link);
  return machine_.links.size() - 1;
}

platform::RouteId MachineBuilder::route(const std::string& name,
                                        const std::vector<platform::LinkId>& links,
                                        double latency_s) {
  machine_.routes.push_back({name, links, {latency_s}});
  return machine_.routes.size() - 1;
}

EngineId GraphBuilder::engine(const std::string& name) {
  graph_.engines.push_back({name, scheduler::EngineKind::compute, 0});
  return static_cast<EngineId>(graph_.engines.size() - 1);
}

scheduler::SlotId GraphBuilder::slot() {
  scheduler::Slot slot;
  slot.index = static_cast<std::uint32_t>(graph_.slots.size());
  graph_.slots.push_back(slot);
  return slot.index;
}

TaskId GraphBuilder::task(const Engines& engines, const Tasks& predecessors, const TaskCost& cost,
                          const std::vector<scheduler::SlotUse>& uses, std::uint32_t step) {
  scheduler::Task task;
  task.kind = scheduler::TaskKind::forward;
  task.micro_batch = static_cast<std::uint32_t>(graph_.size());
  task.step = step;
  graph_.steps = std::max(graph_.steps, step + 1);
  costs_.push_back(cost);
  return graph_.add(task, engines, predecessors, uses);
}

const scheduler::TaskGraph& GraphBuilder::graph() {
  if (!finished_) graph_.finish();
  finished_ = true;
  return graph_;
}

TaskCost delay(double seconds) {
  TaskCost cost;
  cost.exclusive = {seconds};
  return cost;
}

TaskCost flow(platform::RouteId route, double amount) {
  TaskCost cost;
  cost.route = route;
  cost.amount = amount;
  return cost;
}

namespace {

// The standard distributions differ between libraries; these do not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  // From 0 to n - 1.
  std::size_t below(std::size_t n) { return random_() % n; }
  double between(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  bool one_in(std::size_t n) { return below(n) == 0; }
  // `count` different numbers below `n`, fewer when there are not that many.
  std::vector<std::size_t> choose(std::size_t count, std::size_t n) {
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t candidate = below(n);
      if (std::find(chosen.begin(), chosen.end(), candidate) == chosen.end()) {
        chosen.push_back(candidate);
      }
    }
    return chosen;
  }

 private:
  std::mt19937_64 random_;
};

void add_routes(Dice& dice, MachineBuilder& machine) {
  const std::size_t links = 3 + dice.below(6);
  for (std::size_t i = 0; i < links; ++i) {
    // Evenly spread on a logarithmic scale over a factor of 30, as PCIe to NVSwitch.
    machine.link("link" + std::to_string(i), 10e9 * std::exp(dice.between(0.0, std::log(30.0))),
                 dice.one_in(5));
  }
  const std::size_t routes = 3 + dice.below(6);
  for (std::size_t i = 0; i < routes; ++i) {
    auto path = dice.choose(1 + dice.below(4), links);
    if (dice.one_in(4)) path.push_back(path.front());
    machine.route("route" + std::to_string(i), path, dice.one_in(3) ? dice.between(0, 1e-3) : 0.0);
  }
}

TaskCost random_cost(Dice& dice, std::size_t routes) {
  TaskCost cost;
  if (dice.one_in(12)) return cost;
  if (dice.one_in(2)) cost.exclusive = {dice.between(1e-4, 0.1)};
  if (cost.exclusive.value == 0.0 || dice.one_in(3)) {
    cost.route = dice.below(routes);
    cost.amount = dice.one_in(15) ? 0.0 : std::floor(dice.between(1e6, 2e9));
  }
  return cost;
}

}  // namespace

RandomCase random_case(std::uint64_t seed) {
  Dice dice(seed);
  RandomCase result;
  add_routes(dice, result.machine);
  const std::size_t routes = result.machine.machine().routes.size();
  const std::size_t engines = 3 + dice.below(8);
  for (std::size_t i = 0; i < engines; ++i) result.graph.engine("engine" + std::to_string(i));
  const std::size_t tasks = 20 + dice.below(61);
  for (std::size_t task = 0; task < tasks; ++task) {
    GraphBuilder::Engines held;
    for (const auto engine : dice.choose(dice.one_in(5) ? 3 : 1, engines)) {
      held.push_back(static_cast<EngineId>(engine));
    }
    GraphBuilder::Tasks waits_for;
    const std::size_t reach = std::min<std::size_t>(task, 15);
    if (reach > 0) {
      for (const auto back : dice.choose(dice.below(4), reach)) {
        waits_for.push_back(static_cast<TaskId>(task - 1 - back));
      }
    }
    result.graph.task(held, waits_for, random_cost(dice, routes));
  }
  return result;
}

}  // namespace offstage::testing
