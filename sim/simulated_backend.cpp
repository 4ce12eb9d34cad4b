#include "sim/simulated_backend.h"

#include <span>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::sim {

using scheduler::TaskId;

SimulatedBackend::SimulatedBackend(const platform::Machine& machine,
                                   const scheduler::TaskGraph& graph,
                                   const std::vector<scheduler::TaskCost>& costs)
    : costs_(costs), flows_(make_flow_engine(machine)), queues_(graph), starts_(graph.size()) {
  OFFSTAGE_CHECK(costs.size() == graph.size(),
                 fmt::format("{} tasks, {} costs", graph.size(), costs.size()));
}

void SimulatedBackend::submit(TaskId task) {
  queues_.submit(task, startable_);
  start_all();
}

void SimulatedBackend::start_all() {
  for (const TaskId task : startable_) {
    starts_[task] = flows_->now();
    flows_->start(task, {costs_[task].exclusive, costs_[task].route, costs_[task].amount});
  }
  startable_.clear();
}

void SimulatedBackend::scale_links(const std::vector<double>& factors) {
  for (std::size_t link = 0; link < factors.size(); ++link) {
    flows_->scale_link(link, factors[link]);
  }
}

void SimulatedBackend::run(const scheduler::CompletionHandler& handler) {
  flows_->run([&](std::span<const TaskId> ended) {
    for (const TaskId task : ended) {
      queues_.complete(task, startable_);
      start_all();
      handler({task, starts_[task], flows_->now()});
    }
  });
  if (queues_.in_flight() > 0) {
    throw Error(ErrorCode::device, fmt::format("{} tasks can never start: {}", queues_.in_flight(),
                                               queues_.describe_waiting()));
  }
}

}  // namespace offstage::sim
