#include "scheduler/step_graph.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include <catch2/catch.hpp>

#include "scheduler/plan_ledger.h"
#include "tests/support/small_machine.h"

namespace offstage::scheduler {
namespace {

std::map<TaskKind, int> count_kinds(const TaskGraph& graph) {
  std::map<TaskKind, int> counts;
  for (const auto& task : graph.tasks) ++counts[task.kind];
  return counts;
}

Plan plan_with(int gpus, std::int64_t micro_batches, ActivationPlace place) {
  auto machine = small_machine();
  machine.gpus.resize(static_cast<std::size_t>(gpus));
  Plan plan = small_plan(machine);
  plan.workload.global_batch = gpus * micro_batches;
  plan.strategy.activations = place;
  for (auto& submodel : plan.submodels) submodel.shard_elements = submodel.parameters / gpus;
  return plan;
}

// Which tasks must be complete before a task starts: the transitive closure of predecessors.
std::vector<std::vector<bool>> ancestors_of(const TaskGraph& graph) {
  std::vector<std::vector<bool>> ancestors(graph.size(), std::vector<bool>(graph.size(), false));
  for (TaskId task = 0; task < graph.size(); ++task) {
    for (const TaskId p : graph.predecessors(task)) {
      ancestors[task][p] = true;
      for (TaskId a = 0; a < p; ++a) {
        if (ancestors[p][a]) ancestors[task][a] = true;
      }
    }
  }
  return ancestors;
}

// Every use of a slot by one occupant comes before the next occupant's first task, whatever the
// order in which a policy runs the graph.
void check_slots_are_never_shared(const TaskGraph& graph) {
  const auto ancestors = ancestors_of(graph);
  std::vector<std::vector<TaskId>> occupant(graph.slots.size());
  std::vector<bool> released(graph.slots.size(), true);
  for (TaskId task = 0; task < graph.size(); ++task) {
    for (const auto& use : graph.uses(task)) {
      if (use.acquires) {
        CHECK(released[use.slot]);
        for (const TaskId before : occupant[use.slot]) {
          INFO(graph.describe(task)
               << " takes slot " << use.slot << " from " << graph.describe(before));
          CHECK(ancestors[task][before]);
        }
        occupant[use.slot].clear();
        released[use.slot] = false;
      }
      occupant[use.slot].push_back(task);
      if (use.releases) released[use.slot] = true;
    }
  }
}

TEST_CASE("a step has the tasks that its sub-models, GPUs and micro-batches ask for",
          "[scheduler][unit]") {
  // 4 sub-models, 2 GPUs, 3 micro-batches. Phases: forward of 3 (the head's forward is part of its
  // backward), backward of 4, so weights cross 7 times: 14 fetches, 7 all-gathers. Forward 3 x 2 x
  // 3 = 18, backward 4 x 2 x 3 = 24. Gradients: 4 reduce-scatters, 8 offloads, 8 updates.
  const auto counts = count_kinds(make_step_graph(plan_with(2, 3, ActivationPlace::gpu), 1));
  CHECK(counts.at(TaskKind::fetch) == 14);
  CHECK(counts.at(TaskKind::all_gather) == 7);
  CHECK(counts.at(TaskKind::forward) == 18);
  CHECK(counts.at(TaskKind::backward) == 24);
  CHECK(counts.at(TaskKind::reduce_scatter) == 4);
  CHECK(counts.at(TaskKind::offload) == 8);
  CHECK(counts.at(TaskKind::update) == 8);
}

TEST_CASE("one GPU needs no collectives", "[scheduler][unit]") {
  const auto counts = count_kinds(make_step_graph(plan_with(1, 2, ActivationPlace::gpu), 1));
  CHECK(counts.count(TaskKind::all_gather) == 0);
  CHECK(counts.count(TaskKind::reduce_scatter) == 0);
}

TEST_CASE("activations in CPU memory leave and come back once each, except at the turn",
          "[scheduler][unit]") {
  // Boundaries 1, 2, 3 of 4 sub-models. The last one is consumed on the GPU, at the turn; 1 and 2
  // cross both ways for each of 3 micro-batches and 2 GPUs: 12 more offloads and 12 more fetches.
  const auto counts = count_kinds(make_step_graph(plan_with(2, 3, ActivationPlace::cpu), 1));
  CHECK(counts.at(TaskKind::offload) == 8 + 12);
  CHECK(counts.at(TaskKind::fetch) == 14 + 12);
}

TEST_CASE("the next step's forward of a sub-model waits only for its own update",
          "[scheduler][unit]") {
  const auto graph = make_step_graph(plan_with(2, 1, ActivationPlace::gpu), 2);
  std::set<std::pair<int, int>> seen;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const auto& t = graph.tasks[task];
    if (t.kind != TaskKind::fetch || t.step == 0) continue;
    for (const TaskId p : graph.predecessors(task)) {
      const auto& before = graph.tasks[p];
      if (before.kind != TaskKind::update) continue;
      CHECK(before.submodel == t.submodel);
      CHECK(before.gpu == t.gpu);
      seen.insert({t.submodel, t.gpu});
    }
  }
  CHECK(seen.size() == 4 * 2);
}

TEST_CASE("the embedding's update waits for a tied head's gradients of every GPU",
          "[scheduler][unit]") {
  Plan plan = plan_with(2, 1, ActivationPlace::gpu);
  plan.submodels.back().borrowed = 64;
  plan.submodels.back().shard_elements = 64;
  const auto graph = make_step_graph(plan, 2);
  check_slots_are_never_shared(graph);
  int updates = 0;
  for (TaskId task = 0; task < graph.size(); ++task) {
    const auto& t = graph.tasks[task];
    if (t.kind != TaskKind::update || t.submodel != 0) continue;
    ++updates;
    std::set<int> heads;
    for (const TaskId p : graph.predecessors(task)) {
      if (graph.tasks[p].submodel == 3 && graph.tasks[p].step == t.step) {
        CHECK(graph.tasks[p].kind == TaskKind::offload);
        heads.insert(graph.tasks[p].gpu);
      }
    }
    CHECK(heads == std::set<int>{0, 1});
  }
  CHECK(updates == 4);
}

TEST_CASE("copies move a shard without its padding, collectives the whole padded buffer",
          "[scheduler][unit]") {
  // 100 parameters on 2 GPUs: shards of 64 elements (a multiple of 32), the second one 36 of them
  // real. bf16: 128 B and 72 B; the all-gather 2 x 64 x 2 = 256 B.
  Plan plan = plan_with(2, 1, ActivationPlace::gpu);
  plan.submodels[1].parameters = 100;
  plan.submodels[1].shard_elements = 64;
  const auto graph = make_step_graph(plan, 1);
  for (const auto& task : graph.tasks) {
    if (task.submodel != 1) continue;
    if (task.kind == TaskKind::fetch) CHECK(task.bytes.value == (task.gpu == 0 ? 128 : 72));
    if (task.kind == TaskKind::all_gather) CHECK(task.bytes.value == 256);
    if (task.kind == TaskKind::update) CHECK(task.elements == (task.gpu == 0 ? 64 : 36));
  }
}

TEST_CASE("no slot is ever shared, whatever the strategy", "[scheduler][unit]") {
  const unsigned seed = 20261130;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto draw = [&random](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  for (int i = 0; i < 40; ++i) {
    const auto place = draw(0, 1) == 0 ? ActivationPlace::gpu : ActivationPlace::cpu;
    Plan plan = plan_with(draw(1, 2), draw(1, 4), place);
    plan.strategy.weight_slots = draw(1, 3);
    plan.strategy.gradient_slots = draw(1, 3);
    plan.strategy.host_gradient_slots = draw(1, 3);
    plan.strategy.spare_activation_slots = draw(1, 3);
    if (draw(0, 1) == 1) plan.submodels.back().borrowed = 64;
    check_slots_are_never_shared(make_step_graph(plan, 2));
  }
}

TEST_CASE("the slots of a graph are those of the ledger", "[scheduler][unit]") {
  const Plan plan = plan_with(2, 3, ActivationPlace::cpu);
  const auto graph = make_step_graph(plan, 1);
  const auto ledger = make_ledger(plan);
  for (const auto& pool : ledger.pools) {
    std::int64_t in_graph = 0;
    for (const auto& slot : graph.slots) {
      if (slot.pool == pool.pool) in_graph += slot.bytes.value;
    }
    std::int64_t in_ledger = 0;
    for (const auto& line : pool.lines) {
      const bool slots = line.what.find("slots") != std::string::npos ||
                         line.what.find("activations") != std::string::npos;
      if (slots) in_ledger += line.bytes.value;
    }
    CHECK(in_graph == in_ledger);
  }
}

}  // namespace
}  // namespace offstage::scheduler
