#include "scheduler/systems/megatron.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "platform/error.h"
#include "platform/machine_reader.h"
#include "scheduler/profile.h"
#include "tests/support/small_machine.h"

using namespace offstage;
using namespace offstage::scheduler;
using namespace offstage::scheduler::systems;

namespace {

// small_workload: hidden 8, 2 heads, vocabulary 100, 16 positions; here with 8 blocks and a batch
// of 8 sequences.
SystemPlan plan_of(const SystemStrategy& strategy, bool tied = true) {
  auto workload = small_workload(8, tied);
  return make_system_plan(platform::load_machine("dgx-a100-80", "../platform/catalog"), workload,
                          strategy, exact_profile());
}

SystemStrategy sizes(std::int64_t data, std::int64_t tensor, std::int64_t pipeline) {
  SystemStrategy strategy;
  strategy.system = System::megatron;
  strategy.data = data;
  strategy.tensor = tensor;
  strategy.pipeline = pipeline;
  return strategy;
}

// "F0 F1 B0 ...": the passes of a GPU in the order of its compute engine.
std::string passes_of(const CostedGraph& step, std::size_t gpu) {
  std::string text;
  for (const Task& task : step.graph.tasks) {
    const bool forward = task.kind == TaskKind::forward;
    if (task.gpu != gpu || (!forward && task.kind != TaskKind::backward)) continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : " ", forward ? 'F' : 'B', task.micro_batch);
  }
  return text;
}

std::vector<std::int64_t> bytes_of(const CostedGraph& step, TaskKind kind) {
  std::vector<std::int64_t> bytes;
  for (const Task& task : step.graph.tasks) {
    if (task.kind == kind) bytes.push_back(task.bytes.value);
  }
  std::ranges::sort(bytes);
  return bytes;
}

}  // namespace

TEST_CASE("stages take turns as the 1F1B schedule has it", "[scheduler][unit]") {
  // Narayanan et al., figure 4: a stage runs as many forward passes ahead as stages follow it. 8
  // sequences on data 2 x micro_batch 1 are 4 micro-batches, fewer than the first stage could run
  // ahead by one.
  const SystemPlan plan = plan_of(sizes(2, 1, 4));
  const CostedGraph step = make_system_graph(plan, exact_profile());
  CHECK(passes_of(step, plan.gpu(0, 0, 0)) == "F0 F1 F2 F3 B0 B1 B2 B3");
  CHECK(passes_of(step, plan.gpu(1, 0, 0)) == "F0 F1 F2 B0 F3 B1 B2 B3");
  CHECK(passes_of(step, plan.gpu(2, 1, 0)) == "F0 F1 B0 F2 B1 F3 B2 B3");
  CHECK(passes_of(step, plan.gpu(3, 1, 0)) == "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST_CASE("boundaries are sent once each way between neighbouring stages", "[scheduler][unit]") {
  // 2 data ranks x 4 micro-batches x 3 gaps x 2 directions; 1 sequence x 16 tokens x hidden 8 x 2
  // B.
  const auto sent =
      bytes_of(make_system_graph(plan_of(sizes(2, 1, 4)), exact_profile()), TaskKind::send);
  CHECK(sent.size() == 48);
  CHECK(sent.front() == 256);
  CHECK(sent.back() == 256);
}

TEST_CASE("gradients are summed among data ranks, a tied embedding's among both ends",
          "[scheduler][unit]") {
  // A block of hidden 8: qkv 8 x 24 + 24, out 8 x 8 + 8, feed-forward 8 x 32 + 32 and 32 x 8 + 8,
  // two norms of 16: 872. Embedding: (100 + 16) x 8 = 928. Final norm 16.
  const std::int64_t block = 872, embedding = 928, words = 800;
  const SystemPlan plan = plan_of(sizes(4, 1, 2));
  CHECK(plan.stages[0].parameters == embedding + 4 * block);
  CHECK(plan.stages[1].parameters == 4 * block + 16 + words);
  const auto reduced = bytes_of(make_system_graph(plan, exact_profile()), TaskKind::all_reduce);
  const std::vector<std::int64_t> expected{2 * words, 2 * (4 * block + 16 + words),
                                           2 * (embedding + 4 * block)};
  CHECK(reduced == expected);
  const auto untied = bytes_of(make_system_graph(plan_of(sizes(4, 1, 2), false), exact_profile()),
                               TaskKind::all_reduce);
  CHECK(untied.size() == 2);
}

TEST_CASE("a shared optimizer updates its part and gathers the weights", "[scheduler][unit]") {
  SystemStrategy strategy = sizes(8, 1, 1);
  strategy.sharding = 1;
  const SystemPlan plan = plan_of(strategy);
  const CostedGraph step = make_system_graph(plan, exact_profile());
  std::int64_t updated = 0;
  for (const Task& task : step.graph.tasks) updated += task.elements;
  // 928 + 8 x 872 + 16 = 7920 parameters, 990 each of eight ranks.
  CHECK(plan.stages[0].parameters == 7920);
  CHECK(updated == 7920);
  const std::vector<std::int64_t> gathered{2 * 7920};
  CHECK(bytes_of(step, TaskKind::all_gather) == gathered);
}

TEST_CASE("tensor ranks compute together and wait for their sums", "[scheduler][unit]") {
  const SystemPlan plan = plan_of(sizes(1, 2, 1));
  const CostedGraph step = make_system_graph(plan, exact_profile());
  for (TaskId task = 0; task < step.graph.size(); ++task) {
    if (step.graph.tasks[task].kind != TaskKind::forward) continue;
    CHECK(step.graph.task_engines(task).size() == 2);
    CHECK(step.costs[task].amount > 0.0);
  }
}

TEST_CASE("what can't be cut is refused with the numbers", "[scheduler][unit]") {
  SystemStrategy strategy = sizes(8, 1, 1);
  strategy.micro_batch = 3;
  CHECK_THROWS_WITH(plan_of(strategy),
                    Catch::Contains("global_batch 8 is no multiple of data 8 x micro_batch 3"));
  auto workload = small_workload(2, true);
  CHECK_THROWS_WITH(make_system_plan(platform::load_machine("dgx-a100-80", "../platform/catalog"),
                                     workload, sizes(1, 1, 4), exact_profile()),
                    Catch::Contains("pipeline 4 has more stages than the model blocks (2)"));
  CHECK_THROWS_WITH(
      make_system_plan(small_core_machine(), workload, sizes(1, 1, 1), exact_profile()),
      Catch::Contains("machines with GPUs"));
}
