#pragma once

#include <string>
#include <vector>

#include "platform/machine.h"
#include "report/chrome_trace.h"
#include "scheduler/cost_model.h"
#include "scheduler/task_graph.h"
#include "scheduler/trace.h"

// A run small enough to check by hand, for the tests of the trace files: two GPUs, one weight slot,
// and the times of three tasks.
//
//   time (ms)          0        1        2        3
//   gpu0.h2d           [fetch 0 ]
//   gpu0 + gpu1 .coll           [gather 1]
//   gpu0.compute                         [forward 2]
namespace offstage::tests {

struct TracedRun {
  platform::Machine machine;
  scheduler::TaskGraph graph;
  scheduler::Trace trace;
  std::vector<scheduler::TaskCost> costs;

  report::TraceWindow window() const { return {graph, trace, costs, 0, {}}; }
};

TracedRun make_traced_run();

// The file's text as the writer makes it.
std::string trace_text(const report::TraceWindow& window, const platform::Machine& machine);

// Writes text into a new file of the test's temporary folder and returns its path.
std::string write_temporary(const std::string& name, const std::string& text);

}  // namespace offstage::tests
