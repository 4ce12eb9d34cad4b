#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

#include "platform/machine.h"
#include "scheduler/cost_model.h"
#include "scheduler/task_graph.h"
#include "scheduler/trace.h"

// Writes a run, simulated or real, as a Chrome trace: open the file in ui.perfetto.dev. One row per
// engine, grouped by device; counters for every memory pool and every link. The same run gives the
// same bytes. trace_reader.h reads the file back for `compare`.
namespace offstage::report {

// "weights"; empty for none.
std::string_view payload_name(scheduler::Payload payload);

// What the file says about itself.
struct TraceLabel {
  std::string file;       // named in errors
  std::string backend;    // "simulated", "cpu"
  std::string plan_hash;  // of the plan that was run
};

// Consecutive steps of one run. A real run is recorded window by window, each with a graph and a
// clock of its own.
struct TraceWindow {
  const scheduler::TaskGraph& graph;
  const scheduler::Trace& trace;
  // By TaskId; without them the counters show slots only and no traffic.
  std::span<const scheduler::TaskCost> costs;
  std::uint32_t first_step = 0;  // of the window, within the run
  platform::Seconds offset;      // of the window's clock, from the start of the run
};

// A stream of windows:
//
//   ChromeTraceWriter writer(out, machine, {.file = path, .backend = "cpu", .plan_hash = hash});
//   writer.append({.graph = graph, .trace = trace, .costs = costs});
//   writer.finish();
class ChromeTraceWriter {
 public:
  // Owner: `out` and `machine` must outlive the writer.
  ChromeTraceWriter(std::ostream& out, const platform::Machine& machine, TraceLabel label);

  // All windows have the engines of the first one.
  void append(const TraceWindow& window);

  // Closes the JSON. Without it the file is not well-formed.
  // Errors: Error(io) when anything could not be written.
  void finish();

 private:
  void write_rows(const scheduler::TaskGraph& graph);
  void write_tasks(const TraceWindow& window);
  void write_counters(const TraceWindow& window);
  void event(const std::string& json);

  std::ostream& out_;
  const platform::Machine& machine_;
  TraceLabel label_;
  bool rows_written_ = false;
  bool first_event_ = true;
};

// One window into a new file. Errors: Error(io) when it can't be written.
void write_chrome_trace(const TraceWindow& window, const platform::Machine& machine,
                        const TraceLabel& label);

}  // namespace offstage::report
