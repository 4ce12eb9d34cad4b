#pragma once

#include <cstdint>
#include <vector>

#include "platform/machine.h"
#include "scheduler/backend.h"
#include "scheduler/cost_model.h"

// A second simulator, to check the first: written without SimGrid and without EngineQueues, slow
// and plain. Rates follow the textbook's progressive filling after every event.
// Source: Bertsekas and Gallager, Data Networks, 6.5.2.
namespace offstage::testing {

// The rate of each flow, by position in `routes`: raise all together; a flow stops rising when one
// of its links is full, or at the cap of a link that caps each flow.
std::vector<double> max_min_rates(const platform::Machine& machine,
                                  const std::vector<platform::RouteId>& routes);

class MaxMinSimulator final : public scheduler::Backend {
 public:
  // Borrows all three.
  MaxMinSimulator(const platform::Machine& machine, const scheduler::TaskGraph& graph,
                  const std::vector<scheduler::TaskCost>& costs);

  platform::Seconds now() const override { return {now_}; }
  void submit(scheduler::TaskId task) override;
  void run(const scheduler::CompletionHandler& handler) override;

 private:
  enum class Phase : std::uint8_t { unknown, submitted, delayed, flowing, complete };
  struct Progress {
    Phase phase = Phase::unknown;
    double start = 0.0;
    double delayed_until = 0.0;
    double remaining = 0.0;
  };
  bool can_start(scheduler::TaskId task) const;
  void start_what_can();
  void advance();
  std::vector<scheduler::TaskId> ended() const;

  const platform::Machine& machine_;
  const scheduler::TaskGraph& graph_;
  const std::vector<scheduler::TaskCost>& costs_;
  std::vector<Progress> progress_;            // by TaskId
  std::vector<scheduler::TaskId> in_flight_;  // in submission order
  double now_ = 0.0;
};

}  // namespace offstage::testing
