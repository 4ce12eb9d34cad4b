#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <sys/resource.h>

#include "scheduler/strategy.h"
#include "sim/simulate.h"
#include "tests/support/builders.h"

// How many tasks a second the simulator does, from policy and manager down to SimGrid, on a graph
// shaped like a sub-model-major training step on eight GPUs.
//
//   offstage_bench_simulator [TASKS]    100,000 unless told
namespace offstage::testing {
namespace {

constexpr int kGpus = 8;
constexpr int kMicroBatches = 8;

struct Node {
  MachineBuilder machine;
  std::vector<platform::RouteId> h2d, d2h, optimizer;
  platform::RouteId collective = 0;
};

Node make_node() {
  Node node;
  MachineBuilder& m = node.machine;
  std::vector<platform::LinkId> ports;
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    ports.push_back(m.link("nvswitch.out", 300e9));
    ports.push_back(m.link("nvswitch.in", 300e9));
  }
  node.collective = m.route("nvswitch", ports);
  for (int socket = 0; socket < 2; ++socket) {
    const auto dram = m.link("dram", 150e9);
    node.optimizer.push_back(m.route("optimizer", {dram, m.link("cores", 120e9, true)}));
    for (int pcie_switch = 0; pcie_switch < 2; ++pcie_switch) {
      const auto up = m.link("up", 26e9), down = m.link("down", 26e9),
                 both = m.link("duplex", 42e9);
      for (int gpu = 0; gpu < 2; ++gpu) {
        node.h2d.push_back(m.route("h2d", {m.link("gpu.up", 26e9), up, both, dram}, 5e-6));
        node.d2h.push_back(m.route("d2h", {m.link("gpu.down", 26e9), down, both, dram}, 5e-6));
      }
    }
  }
  return node;
}

// Sub-models one after the other: fetch on each GPU, gather, compute, scatter, offload, update.
class StepGraph {
 public:
  explicit StepGraph(const Node& node);
  void add_submodel(int k);
  GraphBuilder builder;

 private:
  const Node& node_;
  GraphBuilder::Engines compute_, h2d_, d2h_, collective_, optimizer_;
  std::vector<GraphBuilder::Tasks> readers_;  // last compute tasks of each sub-model
  GraphBuilder::Tasks last_compute_ = GraphBuilder::Tasks(kGpus, 0);
};

StepGraph::StepGraph(const Node& node) : node_(node) {
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    const std::string name = "gpu" + std::to_string(gpu);
    compute_.push_back(builder.engine(name + ".compute"));
    h2d_.push_back(builder.engine(name + ".h2d"));
    d2h_.push_back(builder.engine(name + ".d2h"));
    collective_.push_back(builder.engine(name + ".collective"));
  }
  for (int socket = 0; socket < 2; ++socket) optimizer_.push_back(builder.engine("optimizer"));
}

void StepGraph::add_submodel(int k) {
  GraphBuilder::Tasks slot_free;  // two weight slots: wait for the sub-model before the last
  if (k >= 2) slot_free = readers_[static_cast<std::size_t>(k) - 2];
  GraphBuilder::Tasks fetches;
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    GraphBuilder::Tasks before;
    if (!slot_free.empty()) before.push_back(slot_free[static_cast<std::size_t>(gpu)]);
    // Shards differ a little, so that not everything ends at once.
    fetches.push_back(builder.task({h2d_[gpu]}, before, flow(node_.h2d[gpu], 50e6 + 1e5 * gpu)));
  }
  const auto gather = builder.task(collective_, fetches, flow(node_.collective, 400e6));
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    for (int micro_batch = 0; micro_batch < kMicroBatches; ++micro_batch) {
      const GraphBuilder::Tasks before =
          k > 0 ? GraphBuilder::Tasks{gather, last_compute_[gpu]} : GraphBuilder::Tasks{gather};
      last_compute_[gpu] =
          builder.task({compute_[gpu]}, before, delay(1e-3 * (1 + 0.01 * gpu + 0.001 * (k % 7))));
    }
  }
  readers_.push_back(last_compute_);
  const auto scatter = builder.task(collective_, last_compute_, flow(node_.collective, 400e6));
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    const auto offload =
        builder.task({d2h_[gpu]}, {scatter}, flow(node_.d2h[gpu], 50e6 + 1e5 * gpu));
    builder.task({optimizer_[gpu / 4]}, {offload}, flow(node_.optimizer[gpu / 4], 650e6));
  }
}

// Processor time of all children that have ended, in seconds.
double child_time() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void measure(const char* name, scheduler::PolicyKind policy, const Node& node, StepGraph& step) {
  const double before = child_time();
  const auto result = sim::simulate(
      {node.machine.machine(), step.builder.graph(), step.builder.costs(), policy, 4});
  // Wall time is what users see; processor time is what to compare on a busy machine.
  const double processor = child_time() - before;
  const auto tasks = static_cast<double>(step.builder.graph().size());
  std::printf("%-14s %8.0f tasks: wall %6.3f s, %7.0f tasks/s; processor %6.3f s, %7.0f tasks/s\n",
              name, tasks, result.wall.value, tasks / result.wall.value, processor,
              tasks / processor);
}

int run(int tasks) {
  const Node node = make_node();
  StepGraph step(node);
  for (int k = 0; static_cast<int>(step.builder.costs().size()) < tasks; ++k) step.add_submodel(k);
  measure("fifo", scheduler::PolicyKind::fifo, node, step);
  measure("planned", scheduler::PolicyKind::planned, node, step);
  measure("critical_path", scheduler::PolicyKind::critical_path, node, step);
  return 0;
}

}  // namespace
}  // namespace offstage::testing

int main(int argc, char** argv) {
  return offstage::testing::run(argc > 1 ? std::atoi(argv[1]) : 100'000);
}
