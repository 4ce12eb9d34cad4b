#include <algorithm>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "scheduler/systems/system_plan.h"
#include "tests/support/small_machine.h"

using namespace offstage;
using namespace offstage::scheduler;
using namespace offstage::scheduler::systems;

namespace {

// 3488 parameters: embedding 928, two blocks of 872, head 816. Two GPUs take 8 sequences in
// micro-batches of 1: 4 each.
struct Step {
  SystemPlan plan;
  CostedGraph step;
};

// With a curve of all-reduces, at twice a reduce-scatter's time.
platform::Machine machine_with_all_reduce() {
  platform::Machine machine = small_machine();
  for (const auto& curve : std::vector(machine.collectives)) {
    if (curve.kind != platform::CollectiveKind::reduce_scatter) continue;
    auto& twice = machine.collectives.emplace_back(curve);
    twice.kind = platform::CollectiveKind::all_reduce;
    for (auto& [bytes, time] : twice.points.value) time = time * 2.0;
  }
  return machine;
}

Step step_of(const SystemStrategy& strategy, const Profile& profile = exact_profile()) {
  SystemPlan plan =
      make_system_plan(machine_with_all_reduce(), small_workload(2, false), strategy, profile);
  CostedGraph step = make_system_graph(plan, profile);
  return {std::move(plan), std::move(step)};
}

struct Sum {
  int tasks = 0;
  std::int64_t bytes = 0, elements = 0;
};

Sum sum_of(const Step& step, TaskKind kind) {
  Sum sum;
  for (const Task& task : step.step.graph.tasks) {
    if (task.kind != kind) continue;
    ++sum.tasks;
    sum.bytes += task.bytes.value;
    sum.elements += task.elements;
  }
  return sum;
}

TaskId first(const Step& step, TaskKind kind, std::size_t nth) {
  for (TaskId id = 0; id < step.step.graph.size(); ++id) {
    if (step.step.graph.tasks[id].kind == kind && nth-- == 0) return id;
  }
  FAIL("no such task");
  return 0;
}

Profile offloading_profile() {
  Profile profile = exact_profile();
  OffloadStack stack;
  stack.threads.value = OptimizerThreads::one;
  stack.core_time_per_parameter.value = {10.0};
  stack.pageable_copy.value = {5.0};
  stack.gpu_memory_part.value = 0.9;
  stack.state_part.value = 0.8;
  profile.offload = stack;
  return profile;
}

}  // namespace

TEST_CASE("DDP sums all gradients once a step and updates everything everywhere",
          "[scheduler][unit]") {
  const Step step = step_of(default_strategy(System::ddp, 2));
  CHECK(sum_of(step, TaskKind::forward).tasks == 4 * 2 * 4);  // layers, GPUs, micro-batches
  CHECK(sum_of(step, TaskKind::all_reduce).tasks == 1);
  CHECK(sum_of(step, TaskKind::all_reduce).bytes == 3488 * 2);
  CHECK(sum_of(step, TaskKind::update).elements == 2 * 3488);
  CHECK(sum_of(step, TaskKind::all_gather).tasks == 0);
}

TEST_CASE("ZeRO-2 sums in every micro-batch, ZeRO-1 once, bucket by bucket", "[scheduler][unit]") {
  SystemStrategy strategy = default_strategy(System::zero2, 2);
  CHECK(sum_of(step_of(strategy), TaskKind::reduce_scatter).bytes == 4 * 3488 * 2);
  // From the head down: 816 + 872 reach 1500, and so do 872 + 928.
  strategy.bucket_elements = 1500;
  CHECK(sum_of(step_of(strategy), TaskKind::reduce_scatter).tasks == 4 * 2);
  const Step once = step_of(default_strategy(System::zero1, 2));
  CHECK(sum_of(once, TaskKind::reduce_scatter).bytes == 3488 * 2);
  CHECK(sum_of(once, TaskKind::update).elements == 3488);
  CHECK(sum_of(once, TaskKind::all_gather).bytes == 3488 * 2);
}

TEST_CASE("ZeRO-3 gathers for both passes, but the last layer once", "[scheduler][unit]") {
  const Step step = step_of(default_strategy(System::zero3, 2));
  // 3488 up and 3488 - 816 down, 2 bytes each, in 4 micro-batches.
  CHECK(sum_of(step, TaskKind::all_gather).bytes == 4 * (3488 + 2672) * 2);
  CHECK(sum_of(step, TaskKind::reduce_scatter).bytes == 4 * 3488 * 2);
  CHECK(sum_of(step, TaskKind::update).elements == 3488);
}

TEST_CASE("ZeRO-3 gathers as far ahead as it prefetches", "[scheduler][unit]") {
  SystemStrategy strategy = default_strategy(System::zero3, 2);
  strategy.prefetch_elements = 1;  // one layer at least
  const Step step = step_of(strategy);
  // The third layer's gather waits until the first one is through on both GPUs.
  const auto waits = step.step.graph.predecessors(first(step, TaskKind::all_gather, 2));
  CHECK(std::ranges::count(waits, first(step, TaskKind::forward, 0)) == 1);
  CHECK(std::ranges::count(waits, first(step, TaskKind::forward, 1)) == 1);
  CHECK(waits.size() == 2);
}

TEST_CASE("ZeRO-Offload adds gradients up on the GPU and sends the last sums in f32",
          "[scheduler][unit]") {
  const Step step = step_of(default_strategy(System::zero_offload, 2));
  // Of each GPU's 1744: 16-bit sums out 3 times, f32 once; back 3 times; f32 parameters back.
  CHECK(sum_of(step, TaskKind::offload).bytes == 2 * 1744 * (3 * 2 + 4));
  CHECK(sum_of(step, TaskKind::fetch).bytes == 2 * 1744 * (3 * 2 + 4));
  CHECK(sum_of(step, TaskKind::all_gather).bytes == 3488 * 2);
}

TEST_CASE("ZeRO-3 fetches parameters that live in CPU memory share by share", "[scheduler][unit]") {
  SystemStrategy strategy = default_strategy(System::zero3_offload, 2);
  strategy.sub_group_elements = 1000;
  const Step step = step_of(strategy);
  // A micro-batch fetches half of 6160 parameters and brings 1744 gradients back; it sends 1744
  // out, and the last one sends them twice.
  CHECK(sum_of(step, TaskKind::fetch).bytes == 2 * 4 * (3080 + 1744) * 2);
  CHECK(sum_of(step, TaskKind::offload).bytes == 2 * (4 + 1) * 1744 * 2);
  CHECK(sum_of(step, TaskKind::update).tasks == 2 * 2);
  CHECK(sum_of(step, TaskKind::update).elements == 3488);
}

TEST_CASE("an update on the CPU takes as long as its threads or the memory they share",
          "[scheduler][unit]") {
  const SystemStrategy strategy = default_strategy(System::zero_offload, 2);
  const Step by_memory = step_of(strategy);
  const TaskId update = first(by_memory, TaskKind::update, 0);
  CHECK(by_memory.step.costs[update].route);
  CHECK(by_memory.step.costs[update].amount == Approx(1744 * 26.0));
  // 1744 x 10 s by one thread; memory would take 2 x 1744 x 26 / 25 s for both processes.
  const Step by_cores = step_of(strategy, offloading_profile());
  CHECK_FALSE(by_cores.step.costs[update].route);
  CHECK(by_cores.step.costs[update].exclusive.value == Approx(17440.0));
}

TEST_CASE("a copy from memory that is not pinned is staged and keeps its GPU waiting",
          "[scheduler][unit]") {
  SystemStrategy strategy = default_strategy(System::zero_offload, 2);
  strategy.pinned_memory = false;
  const Step step = step_of(strategy, offloading_profile());
  const TaskId copy = first(step, TaskKind::offload, 0);
  // 3488 B at 5 B/s; the 10 B/s uplink takes half of it.
  CHECK(step.step.costs[copy].exclusive.value == Approx(3488 / 5.0 - 3488 / 10.0));
  CHECK(step.step.graph.task_engines(copy).size() == 2);
}

TEST_CASE("PatrickStar's chunks in CPU memory come and go in every pass", "[scheduler][unit]") {
  SystemStrategy strategy = default_strategy(System::patrickstar, 2);
  strategy.parameters = strategy.optimizer = Place::cpu;
  const Step step = step_of(strategy, offloading_profile());
  // 1744 parameters of each GPU, there and back in two passes of 4 micro-batches. Their gradients
  // are on the CPU then, and the new parameters stay there.
  CHECK(sum_of(step, TaskKind::fetch).bytes == 2 * 4 * 2 * 1744 * 2);
  CHECK(sum_of(step, TaskKind::offload).bytes == 2 * 4 * 2 * 1744 * 2);
  CHECK(sum_of(step, TaskKind::update).elements == 3488);
}

TEST_CASE("Harmony swaps a layer in once for all micro-batches", "[scheduler][unit]") {
  const Step step = step_of(default_strategy(System::harmony, 2));
  CHECK(sum_of(step, TaskKind::fetch).bytes == 2 * (3488 + 2672) * 2);
  CHECK(sum_of(step, TaskKind::offload).bytes == 2 * 1744 * 2);
  CHECK(sum_of(step, TaskKind::update).elements == 3488);
}
