#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "platform/machine.h"
#include "scheduler/cost_model.h"
#include "scheduler/task_graph.h"

// Small machines and task graphs for tests, with only what the test is about.
namespace offstage::testing {

// A machine of links and routes, nothing else.
class MachineBuilder {
 public:
  platform::LinkId link(const std::string& name, double bytes_per_s, bool caps_each_flow = false);
  platform::RouteId route(const std::string& name, const std::vector<platform::LinkId>& links,
                          double latency_s = 0.0);
  const platform::Machine& machine() const { return machine_; }

 private:
  platform::Machine machine_;
};

// Tasks with their costs. A task is told apart by its `micro_batch`, which is its id.
class GraphBuilder {
 public:
  using Engines = std::vector<scheduler::EngineId>;
  using Tasks = std::vector<scheduler::TaskId>;

  scheduler::EngineId engine(const std::string& name);
  scheduler::SlotId slot();
  scheduler::TaskId task(const Engines& engines, const Tasks& predecessors,
                         const scheduler::TaskCost& cost,
                         const std::vector<scheduler::SlotUse>& uses = {}, std::uint32_t step = 0);
  // Finishes the graph; add nothing afterwards.
  const scheduler::TaskGraph& graph();
  const std::vector<scheduler::TaskCost>& costs() const { return costs_; }

 private:
  scheduler::TaskGraph graph_;
  std::vector<scheduler::TaskCost> costs_;
  bool finished_ = false;
};

scheduler::TaskCost delay(double seconds);
scheduler::TaskCost flow(platform::RouteId route, double amount);

struct RandomCase {
  MachineBuilder machine;
  GraphBuilder graph;
};

// A machine of a few links (some of which cap each flow), routes (some with latency, some with a
// link twice), and 20 to 80 tasks with up to 3 engines and 3 predecessors each: delays, flows,
// both, and tasks of no length. The same for the same seed everywhere.
RandomCase random_case(std::uint64_t seed);

}  // namespace offstage::testing
