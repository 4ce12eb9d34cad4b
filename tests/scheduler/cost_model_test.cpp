#include "scheduler/cost_model.h"

#include <array>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/error.h"
#include "scheduler/working_memory.h"
#include "tests/support/small_machine.h"

using namespace offstage;
using namespace offstage::scheduler;
using platform::Bytes;
using platform::Machine;

namespace {

TaskCost cost_of(const Machine& machine, const Profile& profile, const Task& task,
                 const Plan& plan) {
  Plan with_machine = plan;
  with_machine.machine = machine;
  TaskGraph graph;
  graph.engines = {{"engine", EngineKind::compute, 0}};
  graph.steps = 1;
  const std::array<EngineId, 1> engine{0};
  graph.add(task, engine, {}, {});
  graph.finish();
  return make_costs(with_machine, profile, graph).at(0);
}

TaskCost cost_of(const Machine& machine, const Profile& profile, const Task& task) {
  return cost_of(machine, profile, task, small_plan(machine));
}

}  // namespace

TEST_CASE("a fetch waits for the route and flows over it", "[scheduler][unit]") {
  const Machine machine = small_machine();
  Task task{.kind = TaskKind::fetch, .gpu = 1, .bytes = Bytes{30}};
  const TaskCost cost = cost_of(machine, exact_profile(), task);
  CHECK(cost.exclusive.value == 0.0);
  CHECK(cost.route == machine.gpus[1].h2d[0]);
  CHECK(cost.amount == Approx(30.0));
  // 0.5 s latency + 30 B over the 10 B/s uplink.
  CHECK(lone_time(machine, cost).value == Approx(3.5));
}

TEST_CASE("an offload takes the way back, and the executor's overhead counts once",
          "[scheduler][unit]") {
  const Machine machine = small_machine();
  Profile profile = exact_profile();
  profile.task_overhead.value = {0.125};
  const TaskCost cost =
      cost_of(machine, profile, {.kind = TaskKind::offload, .gpu = 0, .bytes = Bytes{20}});
  CHECK(cost.route == machine.gpus[0].d2h[0]);
  // 0.125 + 0.5 + 20 / 10.
  CHECK(lone_time(machine, cost).value == Approx(2.625));
}

TEST_CASE("a link named twice in a route gives a flow half its capacity", "[scheduler][unit]") {
  Machine machine = small_machine();
  machine.routes[0].links = {0, 0};
  CHECK(platform::BytesPerSecond{10.0} == route_rate(machine, 0));
}

TEST_CASE("copies by cores are core time at the rate of one core", "[scheduler][unit]") {
  const Machine machine = small_core_machine();
  const TaskCost cost =
      cost_of(machine, exact_profile(), {.kind = TaskKind::fetch, .bytes = Bytes{6}});
  // 6 B at 4 B/s are 1.5 s of one core.
  CHECK(cost.amount == Approx(1.5e9));
  CHECK(lone_time(machine, cost).value == Approx(1.5));
}

TEST_CASE("a throttled copy engine rests for what is left of its time", "[scheduler][unit]") {
  Machine machine = small_core_machine();
  machine.copy_throttle = {{3.0}, "given", platform::Confidence::high};
  const Task task{.kind = TaskKind::fetch, .bytes = Bytes{6}};
  const TaskCost cost = cost_of(machine, exact_profile(), task);
  // 6 B at 3 B/s are 2 s, of which the core works 1.5 s.
  CHECK(cost.exclusive.value == Approx(0.5));
  CHECK(lone_time(machine, cost).value == Approx(2.0));
  // A throttle above the core's own rate changes nothing.
  machine.copy_throttle->value = {5.0};
  CHECK(lone_time(machine, cost_of(machine, exact_profile(), task)).value == Approx(1.5));
}

TEST_CASE("a collective alone takes its measured time", "[scheduler][unit]") {
  const Machine machine = small_machine();
  const TaskCost cost =
      cost_of(machine, exact_profile(), {.kind = TaskKind::all_gather, .bytes = Bytes{80}});
  // 10 s at 80 B; over 100 B/s ports that is a flow of 1000 B.
  CHECK(cost.amount == Approx(1000.0));
  CHECK(lone_time(machine, cost).value == Approx(10.0));
}

TEST_CASE("forward is the sum of its operations", "[scheduler][unit]") {
  const Machine machine = small_machine();
  const auto forward = [&](std::uint16_t submodel) {
    return lone_time(machine,
                     cost_of(machine, exact_profile(),
                             {.kind = TaskKind::forward, .submodel = submodel, .bytes = {}}))
        .value;
  };
  CHECK(forward(0) == Approx(0.25));  // 2 B / 10 B/s are less than a launch of 0.25 s
  CHECK(forward(1) == Approx(6.5));   // 200/100 + 5/10 + 300/100 + 10/10
  CHECK(forward(3) == Approx(1.0));   // 100/100
}

TEST_CASE("backward recomputes what it needs and no more", "[scheduler][unit]") {
  const Machine machine = small_machine();
  const auto backward = [&](std::uint16_t submodel) {
    return lone_time(machine,
                     cost_of(machine, exact_profile(),
                             {.kind = TaskKind::backward, .submodel = submodel, .bytes = {}}))
        .value;
  };
  // Rows are looked up from tokens: nothing is recomputed, 4 B / 10 B/s.
  CHECK(backward(0) == Approx(0.4));
  // The block's last product, the pass that makes its input and what follows it are left out: only
  // an output that nobody reads needs them. 200/100, then 1000/100.
  CHECK(backward(1) == Approx(12.0));
  // The head's output is the loss: 100/100 + 200/100.
  CHECK(backward(3) == Approx(3.0));
}

TEST_CASE("inside a sub-model of several layers only the last output is spared",
          "[scheduler][unit]") {
  const Machine machine = small_machine();
  Plan plan = small_plan(machine);
  plan.submodels = {{.first_layer = 0, .end_layer = 1},
                    {.first_layer = 1, .end_layer = 3},
                    {.first_layer = 3, .end_layer = 4}};
  const TaskCost cost = cost_of(machine, exact_profile(),
                                {.kind = TaskKind::backward, .submodel = 1, .bytes = {}}, plan);
  // 6.5 + 2 of forward, 10 + 10 of backward.
  CHECK(cost.exclusive.value == Approx(28.5));
  std::vector<std::string> names;
  for (const auto& operation : compute_operations(plan, 1, TaskKind::backward)) {
    names.push_back(operation.name);
  }
  CHECK(names == std::vector<std::string>{"in", "gelu", "out", "add", "in", "back", "back"});
}

TEST_CASE("a block that ends in a norm is recomputed in full", "[scheduler][unit]") {
  const Machine machine = small_machine();
  Plan plan = small_plan(machine);
  plan.table.model.norms_per_block = 4;
  const TaskCost cost = cost_of(machine, exact_profile(),
                                {.kind = TaskKind::backward, .submodel = 1, .bytes = {}}, plan);
  CHECK(cost.exclusive.value == Approx(16.5));  // 6.5 + 10
}

TEST_CASE("a slow card takes longer in proportion", "[scheduler][unit]") {
  Machine machine = small_machine();
  machine.gpus[1].speed = 0.5;
  const TaskCost cost = cost_of(machine, exact_profile(),
                                {.kind = TaskKind::forward, .gpu = 1, .submodel = 1, .bytes = {}});
  CHECK(cost.exclusive.value == Approx(13.0));
  CHECK_FALSE(cost.route.has_value());
}

TEST_CASE("virtual GPUs compute as flows over the cores", "[scheduler][unit]") {
  const Machine machine = small_core_machine();
  const TaskCost cost =
      cost_of(machine, exact_profile(), {.kind = TaskKind::forward, .submodel = 1, .bytes = {}});
  // 6.5 s of work and four launches of 0.25 s that do not hide behind it. In this bf16 run 128
  // weights and two boundaries of 4 x 8 numbers are widened first, 4 B each at 4 B/s, and one
  // boundary is rounded to 2 B: 192 + 16 s.
  CHECK(cost.amount == Approx(215.5e9));
  CHECK(lone_time(machine, cost).value == Approx(215.5));
}

TEST_CASE("an update moves its bytes at the optimizer's efficiency", "[scheduler][unit]") {
  const Machine machine = small_machine();
  Profile profile = exact_profile();
  profile.optimizer_efficiency.value = 0.5;
  const Task task{.kind = TaskKind::update, .bytes = {}, .elements = 10};
  const TaskCost bf16 = cost_of(machine, profile, task);
  // 10 x 26 B / 0.5, at the cap of 25 B/s.
  CHECK(bf16.amount == Approx(520.0));
  CHECK(lone_time(machine, bf16).value == Approx(20.8));
  Plan plan = small_plan(machine);
  plan.workload.precision = platform::Precision::f32;
  CHECK_THROWS_WITH(cost_of(machine, profile, task, plan), Catch::Contains("f32"));
}

TEST_CASE("an update on cores takes its time per parameter", "[scheduler][unit]") {
  const Machine machine = small_core_machine();
  const TaskCost cost =
      cost_of(machine, exact_profile(), {.kind = TaskKind::update, .bytes = {}, .elements = 16});
  CHECK(lone_time(machine, cost).value == Approx(2.0));  // 16 x 0.125 s
}

TEST_CASE("compute tasks carry their sub-model's working memory", "[scheduler][unit]") {
  const Machine machine = small_machine();
  Plan plan = small_plan(machine);
  auto& memory = plan.table.classes[1].memory;
  memory.output = {8};
  memory.forward_peak = {20};
  memory.keep_peak = {50};
  memory.kept = {30};
  memory.backward_peak = {70};
  const auto transient = [&](TaskKind kind) {
    return cost_of(machine, exact_profile(), {.kind = kind, .submodel = 1, .bytes = {}}, plan)
        .transient;
  };
  CHECK(transient(TaskKind::forward) == compute_memory(plan.table, 1, 2, false).forward);
  CHECK(transient(TaskKind::backward) == compute_memory(plan.table, 1, 2, false).backward);
  CHECK(transient(TaskKind::fetch) == Bytes{0});
}
