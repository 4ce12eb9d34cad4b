#include <algorithm>
#include <string>

#include <catch2/catch.hpp>

#include "platform/error.h"
#include "scheduler/systems/system_plan.h"
#include "tests/support/small_machine.h"

using namespace offstage;
using namespace offstage::scheduler;
using namespace offstage::scheduler::systems;
using platform::Bytes;

namespace {

// Embedding (100 + 16) x 8 = 928, two blocks 12 x 64 + 13 x 8 = 872, head 100 x 8 + 16 = 816: 3488
// parameters, of which each of two GPUs owns 1744. A micro-batch is 16 tokens.
SystemPlan plan_of(const SystemStrategy& strategy, const Profile& profile = exact_profile()) {
  return make_system_plan(small_machine(), small_workload(2, false), strategy, profile);
}

Bytes line(const SystemPlan& plan, const std::string& pool, const std::string& what) {
  Bytes sum;
  for (const auto& ledger : plan.memory.pools) {
    if (ledger.name != pool) continue;
    for (const auto& entry : ledger.lines) {
      if (entry.what == what) sum += entry.bytes;
    }
  }
  return sum;
}

OffloadStack offload_stack() {
  OffloadStack stack;
  stack.threads.value = OptimizerThreads::one;
  stack.core_time_per_parameter.value = {1e-9};
  stack.pageable_copy.value = {5.0};
  stack.gpu_memory_part.value = 0.9;
  stack.state_part.value = 0.8;
  return stack;
}

}  // namespace

TEST_CASE("ranks of ZeRO share state, gradients and parameters stage by stage",
          "[scheduler][unit]") {
  struct Shares {
    System system;
    int parameters, gradients, state;
  };
  // 16-bit parameters and gradients, 12 bytes of state: of 3488 parameters, or of 1744.
  const Shares expected[] = {{System::ddp, 6976, 6976, 41856},
                             {System::zero1, 6976, 6976, 20928},
                             {System::zero2, 6976, 3488, 20928},
                             {System::zero3, 3488, 3488, 20928},
                             {System::fsdp, 6976, 6976, 13952}};
  for (const Shares& shares : expected) {
    INFO(to_string(shares.system));
    const SystemPlan plan = plan_of(default_strategy(shares.system, 2));
    CHECK(line(plan, "gpu0", "parameters").value == shares.parameters);
    CHECK(line(plan, "gpu1", "gradients").value == shares.gradients);
    CHECK(line(plan, "gpu1", "optimizer state").value == shares.state);
  }
}

TEST_CASE("what backward keeps follows the recomputation", "[scheduler][unit]") {
  // The stream is 2 x 16 x 8 = 256 bytes. A block keeps two norms' and two products' inputs (4 x
  // 256), queries, keys, values and the result (4 x 256), a number of 4 bytes for each of 16 x 2
  // tokens and heads (fused attention), and GELU's input and output (2 x 2 x 16 x 32): 4224. The
  // head keeps two streams, 512, and its loss takes 16 bytes for each of 16 x 100 logits, 25600.
  SystemStrategy strategy = default_strategy(System::zero3, 2);
  CHECK(line(plan_of(strategy), "gpu0", "activations").value == 2 * 4224 + 512 + 25600);
  strategy.recompute = Recompute::selective;
  CHECK(line(plan_of(strategy), "gpu0", "activations").value == 2 * (4224 - 128) + 512 + 25600);
  strategy.recompute = Recompute::full;
  CHECK(line(plan_of(strategy), "gpu0", "activations").value == 2 * 256 + 512 + 25600);
}

TEST_CASE("an optimizer on the CPU has its state there, pinned parts in powers of two",
          "[scheduler][unit]") {
  const SystemPlan plan = plan_of(default_strategy(System::zero_offload, 2));
  CHECK(line(plan, "gpu0", "optimizer state").value == 0);
  CHECK(line(plan, "gpu0", "gradients").value == 0);
  CHECK(line(plan, "host0", "moments of gpu0").value == 1744 * 8);
  // 1744 x 4 = 6976, the next power of two is 8192; sums in 16 bits: 3488, 4096.
  CHECK(line(plan, "host0", "f32 parameters of gpu0").value == 8192);
  CHECK(line(plan, "host0", "f32 gradients of gpu1").value == 8192);
  CHECK(line(plan, "host0", "sums of gradients of gpu1").value == 4096);
  SystemStrategy pageable = plan.strategy;
  pageable.pinned_memory = false;
  CHECK(line(plan_of(pageable), "host0", "f32 parameters of gpu0").value == 6976);
}

TEST_CASE("state in CPU memory goes where there is room: each socket has its part",
          "[scheduler][unit]") {
  platform::Machine machine = small_machine();
  machine.sockets.push_back(machine.sockets.front());
  machine.sockets.back().pool = machine.pools.size();
  machine.pools.push_back(machine.pools[machine.sockets.front().pool]);
  machine.pools.back().name = "host1";
  const SystemPlan plan =
      make_system_plan(machine, small_workload(2, false), default_strategy(System::zero_offload, 2),
                       exact_profile());
  CHECK(line(plan, "host0", "moments of gpu1").value == 1744 * 4);
  CHECK(line(plan, "host1", "moments of gpu1").value == 1744 * 4);
}

TEST_CASE("chunks that are kept in CPU memory leave the GPU only what is on its way",
          "[scheduler][unit]") {
  Profile profile = exact_profile();
  profile.offload = offload_stack();
  SystemStrategy strategy = default_strategy(System::patrickstar, 2);
  strategy.parameters = strategy.optimizer = Place::cpu;
  const SystemPlan plan = plan_of(strategy, profile);
  CHECK(line(plan, "gpu0", "chunks of parameters and gradients").value == 0);
  // A chunk is no larger than the model: two of 3488 x 2.
  CHECK(line(plan, "gpu0", "chunks on their way").value == 13952);
  CHECK(line(plan, "host0", "chunks of parameters of gpu0").value == 3488);
  CHECK(line(plan, "host0", "chunks of optimizer state of gpu1").value == 1744 * 12);
  // It counts on 0.9 of each memory.
  const auto& host = *std::ranges::find(plan.memory.pools, "host0", &PoolLedger::name);
  CHECK(line(plan, "host0", "memory left alone").value ==
        Approx(0.1 * static_cast<double>(host.capacity.value)).margin(1.0));
}

TEST_CASE("a system that places chunks needs to know its software", "[scheduler][unit]") {
  CHECK_THROWS_WITH(plan_of(default_strategy(System::patrickstar, 2)),
                    Catch::Contains("exact") && Catch::Contains("'offload'"));
}
