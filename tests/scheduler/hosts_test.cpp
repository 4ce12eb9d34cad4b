#include "platform/hosts.h"

#include <algorithm>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "scheduler/cost_model.h"
#include "scheduler/engine_queues.h"
#include "scheduler/plan_file.h"
#include "scheduler/planner.h"
#include "scheduler/policy.h"
#include "scheduler/step_graph.h"
#include "tests/support/small_machine.h"

namespace offstage::scheduler {
namespace {

using Catch::Contains;
using platform::Bytes;
using platform::Seconds;

platform::Machine one_of(int hosts) {
  auto machine = small_machine();
  for (auto& pool : machine.pools) pool.capacity.value = {10'000'000};
  if (hosts > 1) {
    platform::join_hosts(machine, hosts, {{10.0}, "for tests", platform::Confidence::assumed});
  }
  return machine;
}

Plan plan_of(int hosts, const Strategy& strategy = {}) {
  auto workload = small_workload(4, true);
  workload.model_config = "{}";
  return make_plan(one_of(hosts), workload, strategy);
}

EngineId network_of(const TaskGraph& graph) {
  const auto found =
      std::ranges::find(graph.engines, EngineKind::network, [](const Engine& e) { return e.kind; });
  REQUIRE(found != graph.engines.end());
  return static_cast<EngineId>(found - graph.engines.begin());
}

// The tasks of the network's engine in the order in which they start, when of the tasks that run at
// a time a random one is the next to end.
std::vector<TaskId> network_order(const Plan& plan, const TaskGraph& graph, unsigned seed) {
  std::mt19937 random(seed);
  const EngineId network = network_of(graph);
  const std::vector<Seconds> lone_times(graph.size());
  const auto policy =
      make_policy(plan.strategy.policy, {graph, lone_times, plan.strategy.submit_ahead});
  EngineQueues queues(graph);
  std::vector<TaskId> running, submit, order;
  policy->start(submit);
  while (!submit.empty() || !running.empty()) {
    std::vector<TaskId> started;
    for (const TaskId task : submit) queues.submit(task, started);
    submit.clear();
    if (!running.empty()) {
      std::swap(running[random() % running.size()], running.back());
      const TaskId ended = running.back();
      running.pop_back();
      queues.complete(ended, started);
      policy->step({ended, {}, {}}, {}, submit);
    }
    for (const TaskId task : started) {
      running.push_back(task);
      if (graph.task_engines(task).front() == network) order.push_back(task);
    }
  }
  return order;
}

TEST_CASE("several hosts share the batch, and a plan is one host's", "[scheduler][unit]") {
  // 8 sequences on 2 GPUs of each of 2 hosts: 2 for each GPU, as for 4 GPUs of one host.
  const Plan alone = plan_of(1), together = plan_of(2);
  CHECK(alone.micro_batches(0) == 4);
  CHECK(together.micro_batches(0) == 2);
  CHECK(together.workload.tokens_per_step() == alone.workload.tokens_per_step());
  CHECK(plan_hash(alone) != plan_hash(together));
  CHECK(plan_hash(together) != plan_hash(plan_of(4)));
  CHECK_THROWS_WITH(plan_of(3), Contains("3 hosts x 2 GPUs x micro_batch 1 = 6"));
}

TEST_CASE("what hosts can't do together is refused with the reason", "[scheduler][unit]") {
  Strategy resident;
  resident.resident_state = 1;
  CHECK_NOTHROW(plan_of(1, resident));
  CHECK_THROWS_WITH(plan_of(2, resident), Contains("resident_state 1: with 2 hosts"));
  for (const auto policy : {PolicyKind::fifo, PolicyKind::critical_path}) {
    Strategy strategy;
    strategy.policy = policy;
    CHECK_NOTHROW(plan_of(1, strategy));
    CHECK_THROWS_WITH(plan_of(2, strategy), Contains("policy must be planned"));
  }
}

TEST_CASE("the planner finds a plan for hosts, without resident state", "[scheduler][unit]") {
  const auto machine = one_of(2);
  const auto workload = small_workload(4, true);
  const auto profile = exact_profile();
  const auto result =
      choose_plan({machine, workload, profile, {}}, [](std::span<const Plan> plans) {
        // The more state on the GPUs, the better: none may be offered.
        std::vector<Seconds> steps;
        for (const Plan& plan : plans) {
          steps.push_back({10.0 - static_cast<double>(plan.strategy.resident_state)});
        }
        return steps;
      });
  REQUIRE(result.fits);
  CHECK(result.plan.strategy.resident_state == 0);
  CHECK(result.plan.hosts() == 2);
}

TEST_CASE("each shard's gradients are summed over the hosts before anything reads them",
          "[scheduler][unit]") {
  for (const auto clipping : {Clipping::none, Clipping::exact}) {
    Strategy strategy;
    strategy.clipping = clipping;
    const Plan plan = plan_of(2, strategy);
    const TaskGraph graph = make_step_graph(plan, 2);
    const EngineId network = network_of(graph);
    std::vector<TaskId> sum_of_slot(graph.slots.size(), 0);
    std::size_t sums = 0;
    for (TaskId task = 0; task < graph.size(); ++task) {
      const Task& work = graph.tasks[task];
      if (work.kind == TaskKind::all_reduce) {
        ++sums;
        CHECK(graph.task_engines(task).front() == network);
        REQUIRE(graph.predecessors(task).size() == 1);
        CHECK(graph.tasks[graph.predecessors(task)[0]].kind == TaskKind::offload);
        CHECK(graph.tasks[graph.predecessors(task)[0]].bytes == work.bytes);
        sum_of_slot[graph.uses(task).front().slot] = task;
      }
      if (work.kind != TaskKind::update && work.kind != TaskKind::norm) continue;
      for (const SlotUse& use : graph.uses(task)) {
        if (graph.slots[use.slot].kind != SlotKind::host_gradients) continue;
        CHECK(std::ranges::count(graph.predecessors(task), sum_of_slot[use.slot]) == 1);
      }
    }
    // 2 steps, 6 sub-models (embedding, 4 blocks, head), 2 GPUs.
    CHECK(sums == 24);
  }
  const TaskGraph alone = make_step_graph(plan_of(1), 1);
  CHECK(std::ranges::count(alone.tasks, TaskKind::all_reduce, &Task::kind) == 0);
}

TEST_CASE("hosts whose tasks take unlike times sum their gradients in one order",
          "[scheduler][unit]") {
  const Plan plan = plan_of(2);
  const TaskGraph graph = make_step_graph(plan, 3);
  const auto order = network_order(plan, graph, 1);
  CHECK(order.size() == 36);  // 3 steps, 6 sub-models, 2 GPUs
  CHECK(std::ranges::is_sorted(order));
  for (unsigned seed = 2; seed < 20; ++seed) CHECK(network_order(plan, graph, seed) == order);
}

TEST_CASE("a sum over hosts takes the network's time for a ring", "[scheduler][unit]") {
  const Plan two = plan_of(2), four = plan_of(4);
  const TaskGraph graph = make_step_graph(two, 1);
  const auto task = static_cast<TaskId>(
      std::ranges::find(graph.tasks, TaskKind::all_reduce, &Task::kind) - graph.tasks.begin());
  const auto bytes = static_cast<double>(graph.tasks[task].bytes.value);
  // At 10 B/s: the buffer once between two hosts, one and a half times among four.
  const auto seconds = [&](const Plan& plan) {
    const TaskGraph of_plan = make_step_graph(plan, 1);
    const auto cost = make_costs(plan, exact_profile(), of_plan);
    const auto found = std::ranges::find(of_plan.tasks, TaskKind::all_reduce, &Task::kind);
    return lone_time(plan.machine, cost[static_cast<std::size_t>(found - of_plan.tasks.begin())]);
  };
  CHECK(seconds(two).value == Approx(bytes / 10.0));
  CHECK(seconds(four).value == Approx(1.5 * bytes / 10.0));
}

TEST_CASE("a task is described by the step of the training", "[scheduler][unit]") {
  TaskGraph graph = make_step_graph(plan_of(2), 2);
  graph.first_step = 40;
  CHECK_THAT(graph.describe(0), Contains("step 40"));
  CHECK_THAT(graph.describe(static_cast<TaskId>(graph.size() - 1)), Contains("step 41"));
}

}  // namespace
}  // namespace offstage::scheduler
