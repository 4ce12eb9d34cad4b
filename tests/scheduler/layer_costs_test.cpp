#include "scheduler/systems/layer_costs.h"

#include <catch2/catch.hpp>

#include "tests/support/small_machine.h"

using namespace offstage;
using namespace offstage::scheduler;
using namespace offstage::scheduler::systems;

namespace {

constexpr LayerRange kFirstBlock{1, 2};

// Launches at once, collectives at the machine's curves, nothing of its own.
Profile python_profile() {
  Profile profile = exact_profile();
  EagerStack stack;
  stack.collective_efficiency.value = 1.0;
  stack.odd_gemm_efficiency.value = 1.0;
  profile.eager = stack;
  return profile;
}

SystemPlan cut_plan(const Profile& profile, Recompute recompute = Recompute::none) {
  SystemStrategy strategy = default_strategy(System::megatron, 2);
  strategy.recompute = recompute;
  platform::Machine machine = small_machine();
  machine.collectives.push_back({platform::CollectiveKind::all_reduce,
                                 {{{platform::Bytes{8}, platform::Seconds{2}}}, "given"}});
  return make_system_plan(machine, small_workload(2, false), strategy, profile);
}

PassTime forward_time(const Profile& profile) {
  return LayerCosts(cut_plan(profile), profile).forward(kFirstBlock, 0);
}

}  // namespace

TEST_CASE("a pass takes as long as the host issues it, where that is longer", "[scheduler][unit]") {
  // Forward: 2 norms, 4 products, attention, activation, 2 adds, and 2 all-reduces. Backward: 2
  // kernels for each norm, 3 for each product, 3 of attention, one for each of the others; and 2
  // all-reduces: 4 + 12 + 3 + 1 + 2 + 2. Recomputing issues the forward pass from Python again.
  Profile profile = python_profile();
  profile.eager->forward_launch_interval.value = {1e6};
  profile.launch_interval.value = {1e5};
  const auto total = [](const PassTime& time) { return (time.work + time.reductions).value; };
  CHECK(total(forward_time(profile)) == Approx(12e6));
  const LayerCosts kept(cut_plan(profile), profile);
  CHECK(total(kept.backward(kFirstBlock, 0)) == Approx(24e5));
  const LayerCosts again(cut_plan(profile, Recompute::full), profile);
  CHECK(total(again.backward(kFirstBlock, 0)) == Approx(12e6 + 24e5));
}

TEST_CASE("what a pass waits for in line adds to it, and leaves the links alone",
          "[scheduler][unit]") {
  Profile profile = python_profile();
  const PassTime exact = forward_time(profile);
  profile.eager->collective_wait.value = {7.0};
  profile.eager->collective_efficiency.value = 0.5;
  const PassTime waiting = forward_time(profile);
  CHECK(waiting.work.value == Approx(exact.work.value + 2 * 7.0));
  CHECK(waiting.reductions.value == Approx(2 * exact.reductions.value));
}
