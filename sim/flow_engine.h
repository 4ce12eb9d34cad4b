#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "platform/machine.h"
#include "platform/units.h"
#include "scheduler/task_graph.h"

// Simulated time: delays, and flows that share links max-min fairly. All of SimGrid lies behind
// this interface. At most one per process: SimGrid keeps its state in globals (see simulate.h).
namespace offstage::sim {

// What happens to a task from the moment it is started.
struct Work {
  platform::Seconds delay;                 // first a time that loads nothing
  std::optional<platform::RouteId> route;  // then `amount` over the route, after its latency
  double amount = 0.0;                     // bytes or core-nanoseconds, rounded to 1/65536
};

class FlowEngine {
 public:
  // The tasks that end at one instant, by id.
  using Handler = std::function<void(std::span<const scheduler::TaskId>)>;

  virtual ~FlowEngine() = default;
  virtual platform::Seconds now() const = 0;
  // Errors: Error(bad_input) when the delay or the amount is negative, not finite, or beyond 2e14.
  virtual void start(scheduler::TaskId task, const Work& work) = 0;
  // From now on that part of the capacity which the machine gives the link.
  // Precondition: factor > 0.
  virtual void scale_link(platform::LinkId link, double factor) = 0;
  // Returns when nothing is pending. The handler may start tasks.
  // Errors: what the handler threw, after everything pending has ended.
  virtual void run(const Handler& handler) = 0;
};

// Borrows the machine. Errors: Error(device) for a second one in a process.
std::unique_ptr<FlowEngine> make_flow_engine(const platform::Machine& machine);

}  // namespace offstage::sim
