#include "traced_run.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <unistd.h>

namespace offstage::tests {

using platform::Bytes;
using scheduler::EngineId;
using scheduler::EngineKind;
using scheduler::SlotRole;
using scheduler::SlotUse;
using scheduler::TaskId;
using scheduler::TaskKind;

TracedRun make_traced_run() {
  TracedRun run;
  platform::Machine& machine = run.machine;
  machine.name = "small";
  for (const char* name : {"gpu0", "gpu1", "host0"}) {
    platform::Pool pool;
    pool.name = name;
    machine.pools.push_back(pool);
  }
  for (std::size_t gpu : {0, 1}) {
    platform::Gpu entry;
    entry.pool = gpu;
    machine.gpus.push_back(entry);
  }
  platform::Link pcie;
  pcie.name = "pcie";
  platform::Link cores;
  cores.name = "cores";
  cores.kind = platform::LinkKind::cores;
  machine.links = {pcie, cores};
  machine.routes = {{"h2d", {0}, {}}, {"compute", {1}, {}}};

  scheduler::TaskGraph& graph = run.graph;
  graph.steps = 1;
  graph.engines = {{"gpu0.h2d", EngineKind::h2d, 0},
                   {"gpu0.collective", EngineKind::collective, 0},
                   {"gpu1.collective", EngineKind::collective, 1},
                   {"gpu0.compute", EngineKind::compute, 0}};
  graph.slots = {{scheduler::SlotKind::weights, 0, 0, 0, Bytes{4000}}};

  scheduler::Task fetch;
  fetch.kind = TaskKind::fetch;
  fetch.payload = scheduler::Payload::weights;
  fetch.submodel = 3;
  fetch.bytes = {2000};
  const std::vector<EngineId> h2d{0}, collective{1, 2}, compute{3};
  const std::vector<SlotUse> acquires{{0, SlotRole::weights, true, false}};
  const TaskId first = graph.add(fetch, h2d, {}, acquires);

  scheduler::Task gather = fetch;
  gather.kind = TaskKind::all_gather;
  gather.bytes = {4000};
  const std::vector<TaskId> after_fetch{first};
  const std::vector<SlotUse> uses{{0, SlotRole::weights, false, false}};
  const TaskId second = graph.add(gather, collective, after_fetch, uses);

  scheduler::Task forward;
  forward.submodel = 3;
  forward.kind = TaskKind::forward;
  forward.micro_batch = 1;
  const std::vector<TaskId> after_gather{second};
  const std::vector<SlotUse> releases{{0, SlotRole::weights, false, true}};
  graph.add(forward, compute, after_gather, releases);
  graph.finish();

  run.trace.tasks = {{{0.0}, {1e-3}}, {{1e-3}, {2e-3}}, {{2e-3}, {3e-3}}};
  run.costs.resize(3);
  run.costs[0].route = 0;
  run.costs[0].amount = 2000.0;  // bytes in 1 ms: 2e6 bytes/s
  run.costs[2].route = 1;
  run.costs[2].amount = 1.5e6;  // core-nanoseconds in 1 ms: one and a half cores
  run.costs[2].transient = Bytes{700};
  return run;
}

std::string trace_text(const report::TraceWindow& window, const platform::Machine& machine) {
  std::ostringstream out;
  report::ChromeTraceWriter writer(
      out, machine, {.file = "trace.json", .backend = "simulated", .plan_hash = "abc"});
  writer.append(window);
  writer.finish();
  return out.str();
}

std::string write_temporary(const std::string& name, const std::string& text) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("offstage-report-test-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = folder / name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

}  // namespace offstage::tests
