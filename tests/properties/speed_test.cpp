#include <span>
#include <vector>

#include <catch2/catch.hpp>

#include "scheduler/planner.h"
#include "sim/evaluate.h"
#include "sim/process_pool.h"
#include "tests/properties/random_machine.h"
#include "tests/support/small_machine.h"

namespace offstage::testing {
namespace {

using platform::Seconds;
using scheduler::Draw;
using scheduler::Plan;

scheduler::PlanningResult planned(const platform::Machine& machine,
                                  const workloads::Workload& workload,
                                  const scheduler::Profile& profile,
                                  const scheduler::StrategyRequest& request = {}) {
  return scheduler::choose_plan(
      {machine, workload, profile, request}, [&profile](std::span<const Plan> plans) {
        return sim::simulated_steps(plans, profile, sim::default_workers());
      });
}

// For the plan's order. A policy that decides as tasks complete takes what is there first: it may
// do worse when tasks are shorter (Graham, "Bounds on multiprocessing timing anomalies", 1969), and
// where two end together but for a rounding error, another error may take the other one.
scheduler::StrategyRequest in_order() {
  scheduler::StrategyRequest request;
  request.policy = scheduler::PolicyKind::planned;
  return request;
}

TEST_CASE("a faster link never slows the planned step", "[properties][slow]") {
  const unsigned seed = 53;
  INFO("seed " << seed);
  Draw draw(seed);
  const auto profile = scheduler::exact_profile();
  int compared = 0;
  int faster = 0;
  for (int i = 0; compared < 40; ++i) {
    const auto machine = draw_machine(draw);
    const auto workload = draw_workload(draw);
    auto quicker = machine;
    auto& link = quicker.links[static_cast<std::size_t>(
        draw(0, static_cast<std::int64_t>(machine.links.size()) - 1))];
    link.capacity.value.value *= 0.01 * static_cast<double>(draw(105, 300));
    const auto before = planned(machine, workload, profile, in_order());
    if (!before.fits) continue;
    const auto after = planned(quicker, workload, profile, in_order());
    INFO("case " << i << ", link " << link.name);
    REQUIRE(after.fits);
    CHECK(after.step.value <= before.step.value * (1.0 + 1e-9));
    ++compared;
    faster += after.step.value < 0.99 * before.step.value ? 1 : 0;
  }
  CHECK(faster > 5);
}

TEST_CASE("with the policy left open, no step is slower than in the plan's order",
          "[properties][slow]") {
  const unsigned seed = 55;
  INFO("seed " << seed);
  Draw draw(seed);
  const auto profile = scheduler::exact_profile();
  int compared = 0;
  int faster = 0;
  for (int i = 0; compared < 15; ++i) {
    const auto machine = draw_machine(draw);
    const auto workload = draw_workload(draw);
    const auto ordered = planned(machine, workload, profile, in_order());
    if (!ordered.fits) continue;
    const auto open = planned(machine, workload, profile);
    INFO("case " << i);
    CHECK(open.step.value <= ordered.step.value * (1.0 + 1e-9));
    ++compared;
    faster += open.step.value < 0.99 * ordered.step.value ? 1 : 0;
  }
  CHECK(faster > 2);
}

TEST_CASE("everything twice as fast halves the planned step", "[properties][slow]") {
  const unsigned seed = 54;
  INFO("seed " << seed);
  Draw draw(seed);
  int compared = 0;
  for (int i = 0; compared < 20; ++i) {
    auto machine = draw_machine(draw);
    const auto workload = draw_workload(draw);
    auto profile = scheduler::exact_profile();
    profile.task_overhead.value = {0.001 * static_cast<double>(draw(0, 50))};
    const auto before = planned(machine, workload, profile, in_order());
    if (!before.fits) continue;
    speed_up(machine, profile, 2.0);
    const auto after = planned(machine, workload, profile, in_order());
    INFO("case " << i);
    CHECK(2.0 * after.step.value == Approx(before.step.value).epsilon(1e-6));
    ++compared;
  }
}

}  // namespace
}  // namespace offstage::testing
