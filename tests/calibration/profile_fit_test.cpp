#include "calibration/profile_fit.h"

#include <catch2/catch.hpp>

#include "platform/error.h"
#include "tests/support/builders.h"
#include "tests/support/small_machine.h"

using namespace offstage;
using namespace offstage::calibration;
using scheduler::Profile;
using scheduler::systems::CostedGraph;

namespace {

// A machine without delays of its own, on which a step is memory traffic alone.
platform::Machine quick_machine() {
  platform::Machine machine = scheduler::small_machine();
  machine.collectives.push_back({platform::CollectiveKind::all_reduce,
                                 {{{platform::Bytes{8}, platform::Seconds{2}}}, "given"}});
  for (auto& gpu : machine.gpu_models) {
    gpu.launch_interval.value = {0.0};
    for (auto& point : gpu.gemm.value) point.rate.value = 1e15;
    for (auto& point : gpu.attention.value) point.rate.value = 1e15;
  }
  return machine;
}

Profile python_profile(double memory_efficiency) {
  Profile profile = scheduler::exact_profile();
  profile.eager.emplace();
  profile.eager->collective_efficiency.value = 1.0;
  profile.eager->odd_gemm_efficiency.value = 1.0;
  profile.eager->loss_bytes_per_logit.value = 8;
  set_fitted_number(profile, "memory_efficiency", memory_efficiency);
  return profile;
}

scheduler::systems::SystemStrategy one_by_one(std::int64_t micro_batch) {
  auto strategy = scheduler::systems::default_strategy(scheduler::systems::System::ddp, 2);
  strategy.micro_batch = micro_batch;
  return strategy;
}

// What the software would take on the machine, for models of three depths.
std::vector<FitCase> measured(const platform::Machine& machine, const Profile& software) {
  std::vector<FitCase> cases;
  for (const std::int64_t layers : {2, 3, 4}) {
    for (const std::int64_t micro_batch : {1, 2}) {
      const auto workload = scheduler::small_workload(layers, false);
      const auto strategy = one_by_one(micro_batch);
      const auto plan = make_system_plan(machine, workload, strategy, software);
      cases.push_back({&machine, workload, strategy,
                       lone_step(plan.machine, make_system_graph(plan, software)),
                       std::to_string(layers)});
    }
  }
  return cases;
}

}  // namespace

TEST_CASE("tasks begin when their engines and what they wait for are done", "[calibration][unit]") {
  // Engine A: 3 s, then 1 s after a task of 5 s on engine B: until 6. A task on both: until 8.
  testing::GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  builder.task({a}, {}, testing::delay(3));
  const auto slow = builder.task({b}, {}, testing::delay(5));
  builder.task({a}, {slow}, testing::delay(1));
  builder.task({a, b}, {}, testing::delay(2));
  const CostedGraph step{builder.graph(), builder.costs()};
  CHECK(lone_step({}, step).value == Approx(8.0));
}

TEST_CASE("a fit finds the number that the steps were made with, and predicts models left out",
          "[calibration][unit]") {
  const platform::Machine machine = quick_machine();
  const auto cases = measured(machine, python_profile(0.6));
  const ProfileFit fit =
      fit_profile(cases, python_profile(0.9), {fit_parameter("memory_efficiency")});
  CHECK(fit.profile.memory_efficiency.value == Approx(0.6).epsilon(0.01));
  CHECK(fit.profile.transcendental_efficiency.value == fit.profile.memory_efficiency.value);
  CHECK(fit.held_out_mape < 0.01);
  REQUIRE(fit.groups.size() == 3);
  CHECK(fit.groups[0].cases == 2);
  REQUIRE(fit.values.size() == 1);
  CHECK(fit.values[0].least <= fit.values[0].value);
  CHECK(fit.values[0].most == Approx(0.6).epsilon(0.01));
}

TEST_CASE("an odd row does not pull a fit away, and is the worst of its group",
          "[calibration][unit]") {
  const platform::Machine machine = quick_machine();
  auto cases = measured(machine, python_profile(0.6));
  cases.front().measured.value *= 2.0;
  const ProfileFit fit =
      fit_profile(cases, python_profile(0.9), {fit_parameter("memory_efficiency")});
  CHECK(fit.profile.memory_efficiency.value == Approx(0.6).epsilon(0.02));
  CHECK(fit.groups[0].worst == Approx(-0.5).margin(0.02));
  // Six ratios, 1 but for one of 2, which is the largest: index 0.95 x 5 is the one before it.
  CHECK(fit.range_low == Approx(1.0).margin(0.02));
  CHECK(fit.range_high == Approx(1.0).margin(0.02));
}

TEST_CASE("numbers to fit are known by name", "[calibration][unit]") {
  Profile profile = python_profile(0.5);
  for (const FitParameter& parameter : fit_parameters()) {
    INFO(parameter.name);
    set_fitted_number(profile, parameter.name, parameter.high);
    set_fitted_source(profile, parameter.name, "here");
    CHECK(fitted_number(profile, parameter.name) == Approx(parameter.high));
  }
  CHECK(profile.eager->collective_wait.source == "here");
  CHECK_THROWS_WITH(fit_parameter("memory_eficiency"),
                    Catch::Contains("did you mean 'memory_efficiency'"));
  CHECK_THROWS_AS(fit_profile({}, scheduler::exact_profile(), {}), Error);
}
