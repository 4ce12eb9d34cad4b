#include <set>

#include <catch2/catch.hpp>

#include "scheduler/cost_model.h"
#include "scheduler/plan.h"
#include "scheduler/planner.h"
#include "scheduler/step_graph.h"
#include "tests/support/small_machine.h"

// One GPU on a machine with two sockets: the memory and the cores of both are there to be used.
namespace offstage::scheduler {
namespace {

using platform::Bytes;

// small_machine with one GPU, and a second socket of 5000 B whose copies and updates take routes of
// their own.
platform::Machine lopsided_machine() {
  auto machine = small_machine();
  machine.gpus.resize(1);
  machine.pools.push_back(machine.pools[2]);
  machine.pools.back().name = "host1";
  auto far = machine.sockets[0];
  far.name = "socket1";
  far.pool = machine.pools.size() - 1;
  far.optimizer = machine.routes.size();
  machine.routes.push_back(machine.routes[machine.sockets[0].optimizer]);
  machine.sockets.push_back(far);
  for (auto* routes : {&machine.gpus[0].h2d, &machine.gpus[0].d2h}) {
    machine.routes.push_back(machine.routes[routes->front()]);
    routes->push_back(machine.routes.size() - 1);
  }
  return machine;
}

Plan plan_of(HostMemory memory) {
  Strategy strategy;
  strategy.host_memory = memory;
  strategy.activations = ActivationPlace::cpu;
  auto workload = small_workload(3, false);
  workload.global_batch = 3;
  return make_plan(lopsided_machine(), workload, strategy);
}

Bytes line_of(const Plan& plan, std::size_t pool, const std::string& what) {
  for (const auto& line : plan.memory.pools[pool].lines) {
    if (line.what == what) return line.bytes;
  }
  return {};
}

TEST_CASE("host memory near the GPU leaves the other socket empty", "[scheduler][unit]") {
  const Plan plan = plan_of(HostMemory::near);
  CHECK(line_of(plan, 2, "state of gpu0").value == 12 * plan.parameters());
  CHECK(plan.memory.pools[3].planned().value == 0);
}

TEST_CASE("all host memory is dealt out sub-model by sub-model", "[scheduler][unit]") {
  const Plan plan = plan_of(HostMemory::all);
  // Sub-models 0, 2 and 4 (embedding, second block, head) on socket 0, blocks 1 and 3 on socket 1.
  const std::int64_t block = plan.submodels[1].parameters;
  CHECK(line_of(plan, 2, "state of gpu0").value == 12 * (plan.parameters() - 2 * block));
  CHECK(line_of(plan, 3, "state of gpu0").value == 12 * 2 * block);
  // Activations at the cuts before blocks 1, 2 and 3 of 3 micro-batches wait: 9 slots, 5 and 4.
  const std::int64_t boundary = plan.boundary_bytes().value;
  CHECK(line_of(plan, 2, "activations of gpu0").value == 5 * boundary);
  CHECK(line_of(plan, 3, "activations of gpu0").value == 4 * boundary);
}

TEST_CASE("a sub-model is fetched from, and updated on, the socket that holds it",
          "[scheduler][unit]") {
  const Plan plan = plan_of(HostMemory::all);
  const auto graph = make_step_graph(plan, 1);
  const auto costs = make_costs(plan, exact_profile(), graph);
  std::set<std::string> optimizers;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const auto& work = graph.tasks[task];
    const std::size_t home = work.submodel % 2;
    if (work.kind == TaskKind::fetch && work.payload == Payload::weights) {
      CHECK(costs[task].route == plan.machine.gpus[0].h2d[home]);
    }
    if (work.kind == TaskKind::update) {
      CHECK(costs[task].route == plan.machine.sockets[home].optimizer);
      optimizers.insert(graph.engines[graph.task_engines(task)[0]].name);
    }
  }
  CHECK(optimizers == std::set<std::string>{"socket0.optimizer", "socket1.optimizer"});
}

TEST_CASE("the planner deals out host memory where GPUs hang unevenly on the sockets",
          "[scheduler][unit]") {
  const auto machine = lopsided_machine();
  auto workload = small_workload(2, false);
  workload.global_batch = 1;
  const Profile profile = exact_profile();
  const auto same = [](std::span<const Plan> plans) {
    return std::vector<platform::Seconds>(plans.size(), platform::Seconds{1.0});
  };
  CHECK(choose_plan({machine, workload, profile, {}}, same).plan.strategy.host_memory ==
        HostMemory::all);
  StrategyRequest fixed;
  fixed.host_memory = HostMemory::near;
  CHECK(choose_plan({machine, workload, profile, fixed}, same).plan.strategy.host_memory ==
        HostMemory::near);
}

}  // namespace
}  // namespace offstage::scheduler
