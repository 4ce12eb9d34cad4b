#pragma once

#include <memory>
#include <vector>

#include "platform/units.h"
#include "scheduler/backend.h"
#include "scheduler/link_loads.h"
#include "scheduler/strategy.h"
#include "scheduler/task_graph.h"

// Decides what is submitted when: a pure step (event, now) -> actions. No threads, clocks,
// randomness or files: fed the same completions it makes the same decisions, simulated or real.
namespace offstage::scheduler {

// What a policy may know of the costs.
struct KnownCosts {
  std::vector<platform::Seconds> lone_times;  // by TaskId
  LinkLoads links;
};
KnownCosts known_costs(const platform::Machine& machine, const std::vector<TaskCost>& costs);

struct PolicyInput {
  const TaskGraph& graph;                            // must outlive the policy
  const std::vector<platform::Seconds>& lone_times;  // by TaskId; must outlive the policy
  int submit_ahead = 4;                              // most tasks in flight per engine
  // What the tasks load of shared links; must outlive the policy. Null: not known.
  const LinkLoads* links = nullptr;
};

class Policy {
 public:
  virtual ~Policy() = default;
  // The first tasks to submit, appended to `submit` in order.
  virtual void start(std::vector<TaskId>& submit) = 0;
  // The tasks to submit after a completion, appended in order. Each task is submitted once in a
  // run, after its predecessors.
  virtual void step(const Completion& completion, platform::Seconds now,
                    std::vector<TaskId>& submit) = 0;
};

std::unique_ptr<Policy> make_policy(PolicyKind kind, const PolicyInput& input);
// `costs` must outlive the policy.
std::unique_ptr<Policy> make_policy(PolicyKind kind, const TaskGraph& graph,
                                    const KnownCosts& costs, int submit_ahead);

}  // namespace offstage::scheduler
