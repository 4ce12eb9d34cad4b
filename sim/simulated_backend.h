#pragma once

#include <memory>
#include <vector>

#include "platform/machine.h"
#include "scheduler/backend.h"
#include "scheduler/cost_model.h"
#include "scheduler/engine_queues.h"
#include "scheduler/task_graph.h"
#include "sim/flow_engine.h"

// Carries tasks out in simulated time: a task holds its engines for its exclusive time and then for
// as long as its flow takes. What ends at one instant is delivered by task id.
namespace offstage::sim {

class SimulatedBackend final : public scheduler::Backend {
 public:
  // Borrows all three; costs by TaskId. At most one per process, as FlowEngine.
  SimulatedBackend(const platform::Machine& machine, const scheduler::TaskGraph& graph,
                   const std::vector<scheduler::TaskCost>& costs);

  platform::Seconds now() const override { return flows_->now(); }
  void submit(scheduler::TaskId task) override;
  void run(const scheduler::CompletionHandler& handler) override;

  // From now on every link has that part of the machine's capacity, by LinkId.
  void scale_links(const std::vector<double>& factors);

 private:
  void start_all();

  const std::vector<scheduler::TaskCost>& costs_;
  std::unique_ptr<FlowEngine> flows_;
  scheduler::EngineQueues queues_;
  std::vector<platform::Seconds> starts_;     // by TaskId
  std::vector<scheduler::TaskId> startable_;  // kept to save allocations
};

}  // namespace offstage::sim
