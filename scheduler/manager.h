#pragma once

#include <cstdint>
#include <functional>

#include "platform/units.h"
#include "scheduler/backend.h"
#include "scheduler/policy.h"
#include "scheduler/task_graph.h"
#include "scheduler/trace.h"

// Owns the run loop over any backend: asks the policy, submits, receives completions, checks that
// policy and backend keep their contracts, and records the trace.
namespace offstage::scheduler {

struct RunObserver {
  // Called after each completion and at the end of each step; may throw to end the run.
  std::function<void(const Completion&)> on_completion;
  std::function<void(std::uint32_t step, platform::Seconds end)> on_step_end;
};

class Manager {
 public:
  Manager(const TaskGraph& graph, Backend& backend, Policy& policy);  // borrows all three

  // Runs every task of the graph once.
  // Errors: what the backend throws; Error(device) that names the waiting tasks when the run ends
  // with tasks left over. OFFSTAGE_CHECK for a policy that submits a task twice or before its
  // predecessors, and for a slot acquired while occupied.
  Trace run(const RunObserver& observer = {});

 private:
  const TaskGraph& graph_;
  Backend& backend_;
  Policy& policy_;
};

}  // namespace offstage::scheduler
