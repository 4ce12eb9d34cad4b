#include <algorithm>
#include <map>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/collective.h"
#include "platform/error.h"
#include "scheduler/cost_model.h"
#include "scheduler/plan.h"
#include "scheduler/plan_ledger.h"
#include "scheduler/planner.h"
#include "scheduler/step_graph.h"
#include "tests/support/small_machine.h"

// The tensor split and its mix with the batch split, on GPT-2 shapes small enough to do by hand:
// hidden 8, 2 heads, vocabulary 100, 16 positions, sequences of 16 tokens, bf16.
namespace offstage::scheduler {
namespace {

using platform::Bytes;
using platform::CollectiveKind;
using platform::Seconds;

// small_machine with `gpus` GPUs, two ports each, and an all-reduce of 34 s for 256 B and 10 s for
// 64 B among all of them.
platform::Machine machine_of(std::size_t gpus) {
  auto machine = small_machine();
  const auto first = machine.gpus.front();
  machine.gpus.resize(gpus, first);
  std::vector<platform::LinkId> all;
  for (std::size_t g = 0; g < gpus; ++g) {
    machine.gpus[g].name = "gpu" + std::to_string(g);
    machine.gpus[g].pool = machine.pools.size();
    machine.pools.push_back(machine.pools.front());
    machine.pools.back().name = machine.gpus[g].name;
    machine.links.push_back(machine.links[6]);
    machine.collective_ports.push_back({machine.links.size() - 1});
    all.push_back(machine.links.size() - 1);
  }
  machine.routes[*machine.collective_route].links = all;
  machine.collectives.push_back({CollectiveKind::all_reduce,
                                 {{{Bytes{64}, Seconds{10}}, {Bytes{256}, Seconds{34}}}, "given"}});
  return machine;
}

Plan plan_of(std::size_t gpus, std::int64_t ways, bool tied = false) {
  Strategy strategy;
  strategy.tensor_ways = ways;
  return make_plan(machine_of(gpus), small_workload(2, tied), strategy);
}

std::map<TaskKind, int> count_kinds(const TaskGraph& graph) {
  std::map<TaskKind, int> counts;
  for (const auto& task : graph.tasks) ++counts[task.kind];
  return counts;
}

TEST_CASE("in a pure tensor split all GPUs work on every micro-batch and nothing is gathered",
          "[scheduler][unit]") {
  const Plan plan = plan_of(2, 2);
  CHECK(plan.micro_batches(0) == 8);  // 8 sequences in one group
  const auto graph = make_step_graph(plan, 1);
  auto counts = count_kinds(graph);
  // Sub-models: embedding, 2 blocks, head, which has no forward of its own.
  CHECK(counts[TaskKind::forward] == 3 * 8);
  CHECK(counts[TaskKind::backward] == 4 * 8);
  CHECK(counts[TaskKind::all_gather] == 0);
  CHECK(counts[TaskKind::reduce_scatter] == 0);
  CHECK(counts[TaskKind::fetch] == 2 * (3 + 4));
  CHECK(counts[TaskKind::update] == 2 * 4);
  for (TaskId task = 0; task < graph.size(); ++task) {
    if (graph.tasks[task].kind == TaskKind::forward) CHECK(graph.task_engines(task).size() == 2);
  }
}

TEST_CASE("in a mix the ranks' slices are gathered from the groups", "[scheduler][unit]") {
  const Plan plan = plan_of(4, 2);
  CHECK(plan.replicas() == 2);
  CHECK(plan.micro_batches(0) == 4);
  // A rank's block: 1 head of 4. c_attn 8 x 12 + 12, c_proj 4 x 8 + 8, feed-forward 8 x 16 + 16 and
  // 16 x 8 + 8, two norms of 16: 460 elements.
  CHECK(plan.submodels[1].parameters == 460);
  CHECK(plan.submodels[1].shard_elements == 256);  // 460 / 2 = 230, to a multiple of 32
  const auto graph = make_step_graph(plan, 1);
  auto counts = count_kinds(graph);
  CHECK(counts[TaskKind::forward] == 3 * 4 * 2);
  CHECK(counts[TaskKind::all_gather] == 3 + 4);
  CHECK(counts[TaskKind::reduce_scatter] == 4);
  std::int64_t updated = 0;
  for (const auto& task : graph.tasks) {
    if (task.kind == TaskKind::update && task.submodel == 1) updated += task.elements;
    if (task.kind == TaskKind::all_gather && task.submodel == 1) {
      CHECK(task.bytes.value == 2 * 256 * 2);
    }
  }
  CHECK(updated == 2 * 460);  // each rank's slice once
}

TEST_CASE("a tied head waits for the embeddings of its own rank only", "[scheduler][unit]") {
  const Plan plan = plan_of(4, 2, true);
  const auto graph = make_step_graph(plan, 2);
  for (TaskId task = 0; task < graph.size(); ++task) {
    const auto& head = graph.tasks[task];
    if (head.kind != TaskKind::fetch || head.step != 1 || head.submodel != 3) continue;
    for (const TaskId before : graph.predecessors(task)) {
      const auto& update = graph.tasks[before];
      if (update.kind == TaskKind::update) CHECK(update.gpu % 2 == head.gpu % 2);
    }
  }
}

TEST_CASE("compute tasks carry the all-reduces of their layers", "[scheduler][unit]") {
  const Plan plan = plan_of(2, 2);
  const auto graph = make_step_graph(plan, 1);
  const auto costs = make_costs(plan, exact_profile(), graph);
  // Boundary: 16 tokens x 8 x 2 B = 256 B, 34 s. One f32 number a token: 64 B, 10 s. The group has
  // all GPUs. Embedding 1 forward; block 2 forward, 2 backward and 1 recomputed; head 1 backward
  // and 3 numbers.
  const double forward[] = {34.0, 68.0, 68.0};
  const double backward[] = {0.0, 102.0, 102.0, 64.0};
  const double rate = 100.0;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const auto& work = graph.tasks[task];
    if (work.kind == TaskKind::forward) {
      CHECK(costs[task].amount == Approx(forward[work.submodel] * rate));
    }
    if (work.kind == TaskKind::backward) {
      CHECK(costs[task].amount == Approx(backward[work.submodel] * rate));
    }
  }
}

TEST_CASE("virtual GPUs of a group compute and sum in one flow over as many cores",
          "[scheduler][unit]") {
  auto machine = small_core_machine();
  for (auto& rate : machine.gpu_models[0].attention.value) {
    rate.precision = platform::Precision::f32;
  }
  machine.collectives.push_back({CollectiveKind::all_reduce, {{{Bytes{8}, Seconds{2}}}, "given"}});
  Strategy strategy;
  strategy.tensor_ways = 2;
  const Plan plan = make_plan(machine, small_workload(2, false), strategy);
  const auto graph = make_step_graph(plan, 1);
  const auto costs = make_costs(plan, exact_profile(), graph);
  const Seconds alone = pass_time(plan.machine.gpu_models[0], exact_profile(),
                                  plan.table.layer(1).forward, platform::Precision::f32);
  for (TaskId task = 0; task < graph.size(); ++task) {
    if (graph.tasks[task].kind != TaskKind::forward || graph.tasks[task].submodel != 1) continue;
    CHECK(route_rate(plan.machine, *costs[task].route).value == Approx(2e9));
    // A boundary is summed in f32: 16 tokens x 8 x 4 B = 512 B, at 4 B/s 128 s, twice in a block,
    // on both ranks. Each widens its weights and two boundaries of 128 numbers at 1 s and rounds
    // one at half a second.
    const double widening = static_cast<double>(plan.submodels[1].moved()) + 2 * 128.0 + 64.0;
    CHECK(costs[task].amount == Approx((2 * (alone.value + widening) + 2 * 2 * 128.0) * 1e9));
  }
}

TEST_CASE("a group's all-reduce keeps the bus bandwidth of all and loads its own ports",
          "[scheduler][unit]") {
  const Plan plan = plan_of(4, 2);
  // (2-1)/2 over (4-1)/4 of the time among four.
  CHECK(collective_time(plan.machine, CollectiveKind::all_reduce, Bytes{256}, 2).value ==
        Approx(34.0 * 0.5 / 0.75));
  REQUIRE(plan.group_routes.size() == 2);
  const auto& second = plan.machine.routes[plan.group_routes[1]].links;
  CHECK(second == std::vector<platform::LinkId>{plan.machine.collective_ports[2][0],
                                                plan.machine.collective_ports[3][0]});
}

TEST_CASE("the ledger of a mix counts a slice's slots and a second communicator",
          "[scheduler][unit]") {
  const Plan plan = plan_of(4, 2);
  const auto& gpu = plan.memory.pools[plan.machine.gpus[0].pool];
  const auto bytes = [&gpu](const std::string& what) -> std::int64_t {
    for (const auto& line : gpu.lines) {
      if (line.what == what) return line.bytes.value;
    }
    FAIL("no line " << what);
    return 0;
  };
  // Largest slice: embedding, 50 words + 16 positions of 8 = 528; half of it 264, to 288.
  CHECK(bytes("weight slots") == 2 * (288 * 2) * 2);
  CHECK(bytes("group collectives") == 0);  // the small GPU's buffers take nothing
  // A group's sequences on every one of its GPUs: 4 micro-batches at 3 cuts.
  CHECK(bytes("boundary activations") == 3 * 4 * 256);
}

TEST_CASE("a tensor split that does not come out even is refused", "[scheduler][unit]") {
  CHECK_THROWS_WITH(plan_of(4, 3), Catch::Contains("tensor_ways 3 does not divide the 4 GPUs"));
  CHECK_THROWS_WITH(plan_of(4, 4), Catch::Contains("2 attention heads"));
  Strategy strategy;
  strategy.tensor_ways = 2;
  CHECK_THROWS_WITH(make_plan(small_machine(), small_workload(2, false), strategy),
                    Catch::Contains("no times of all_reduce"));
  CHECK_THROWS_WITH(make_plan(small_core_machine(), small_workload(2, false), strategy),
                    Catch::Contains("no times of all_reduce"));
}

TEST_CASE("a batch smaller than the number of GPUs is planned with a tensor split",
          "[scheduler][unit]") {
  const auto machine = machine_of(2);
  auto workload = small_workload(2, false);
  workload.global_batch = 1;
  const Profile profile = exact_profile();
  const auto as_bound = [](std::span<const Plan> plans) {
    return std::vector<Seconds>(plans.size(), Seconds{1.0});
  };
  const auto result = choose_plan({machine, workload, profile, {}}, as_bound);
  CHECK(result.plan.strategy.tensor_ways == 2);
}

}  // namespace
}  // namespace offstage::scheduler
