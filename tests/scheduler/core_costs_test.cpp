#include "scheduler/core_costs.h"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/small_machine.h"

namespace offstage::scheduler {
namespace {

using platform::Bytes;
using platform::Seconds;

// Every pass has a time of its own: 1, 2, 3 ... s of an element in the order of their names.
Profile numbered_profile() {
  Profile profile = exact_profile();
  CorePasses passes;
  double seconds = 0.0;
  for_each_pass(passes, [&](const char*, platform::Sourced<Seconds>& number) {
    number.value = {seconds += 1.0};
  });
  profile.core_passes = passes;
  return profile;
}

struct Costs {
  Plan plan = small_plan(small_core_machine());
  Profile profile = numbered_profile();

  CoreCosts of() const { return {plan, profile}; }
};

Task gradients(TaskKind kind, std::int64_t bytes) {
  return {.kind = kind, .payload = Payload::gradients, .submodel = 1, .bytes = Bytes{bytes}};
}

Task elements(TaskKind kind, std::int64_t count) {
  return {.kind = kind, .submodel = 1, .bytes = {}, .elements = count};
}

TEST_CASE("a pass that nobody measured is guessed from copies and updates", "[scheduler][unit]") {
  // A core copies 4 B/s; its f32 update takes 0.125 s.
  const CorePasses passes = guess_core_passes(small_core_machine());
  CHECK(passes.update_planes.value == Seconds{0.125});
  CHECK(passes.send_gradient.value == Seconds{1.0});
  CHECK(passes.send_gradient_bf16.value == Seconds{0.5});
  CHECK(passes.widen.value == Seconds{1.0});
  CHECK(passes.narrow.value == Seconds{0.5});
  for_each_pass(passes, [](const char* name, const auto& number) {
    INFO(name);
    CHECK(number.confidence == platform::Confidence::assumed);
  });
}

TEST_CASE("each precision of weights and moments has its own update", "[scheduler][unit]") {
  Costs costs;
  const Task update = elements(TaskKind::update, 10);
  CHECK(costs.of().update(update).value == Approx(20.0));  // planes, f32 moments: 2 s
  costs.plan.strategy.moments = MomentPrecision::bf16;
  CHECK(costs.of().update(update).value == Approx(30.0));
  costs.plan.workload.precision = platform::Precision::f32;
  CHECK(costs.of().update(update).value == Approx(10.0));
  costs.plan.strategy.moments = MomentPrecision::f32;
  CHECK(costs.of().update(update).value == Approx(1.25));  // the machine's 0.125 s
}

TEST_CASE("gradients that stay on a GPU are looked through by the update", "[scheduler][unit]") {
  Costs costs;
  costs.plan.submodels[1].state = StatePlace::resident;
  // 10 x (2 s of the update + 5 s of rounding).
  CHECK(costs.of().update(elements(TaskKind::update, 10)).value == Approx(70.0));
}

TEST_CASE("gradients are rounded on their way to the CPU, activations copied",
          "[scheduler][unit]") {
  Costs costs;
  // 8 B are 4 bf16 gradients, 5 s each; or 2 s of copying at 4 B/s.
  CHECK(costs.of().copy(gradients(TaskKind::offload, 8)).value == Approx(20.0));
  Task activations = gradients(TaskKind::offload, 8);
  activations.payload = Payload::activations;
  CHECK(costs.of().copy(activations).value == Approx(2.0));
  costs.plan.workload.precision = platform::Precision::f32;
  CHECK(costs.of().copy(gradients(TaskKind::offload, 8)).value == Approx(8.0));  // 2 x 4 s
}

TEST_CASE("a gather from resident shards fills the owner's slot too", "[scheduler][unit]") {
  Costs costs;
  const Task gather = gradients(TaskKind::all_gather, 8);
  CHECK(costs.of().collective(gather).value == Approx(2.0));  // the curve's: one copy
  costs.plan.submodels[1].state = StatePlace::resident;
  CHECK(costs.of().collective(gather).value == Approx(4.0));
}

TEST_CASE("a reduce-scatter of a bf16 run sums in f32", "[scheduler][unit]") {
  Costs costs;
  // 8 B of sent gradients are 16 B of sums: at the end of the curve, 2 s for 8 B, twice that.
  CHECK(costs.of().collective(gradients(TaskKind::reduce_scatter, 8)).value == Approx(4.0));
}

TEST_CASE("the embedding's update adds the tied head's gradients", "[scheduler][unit]") {
  Costs costs;
  costs.plan.submodels[3].borrowed = 16;
  Task update = elements(TaskKind::update, 10);
  update.submodel = 0;
  // Half of 16 on each of two GPUs, 2 B each: a copy and a half of 16 B at 4 B/s, 6 s, beside 20.
  CHECK(costs.of().update(update).value == Approx(26.0));
  // With clipping the norm has done it.
  costs.plan.strategy.clipping = Clipping::exact;
  CHECK(costs.of().update(update).value == Approx(20.0));
  Task norm = elements(TaskKind::norm, 10);
  norm.submodel = 0;
  CHECK(costs.of().norm(norm).value == Approx(76.0));  // 10 x 7 s and the 6 s
}

TEST_CASE("bf16 runs widen what they compute with and round the result", "[scheduler][unit]") {
  Costs costs;
  // Boundaries of 4 tokens x 8 numbers; widening takes 8 s, rounding 9. The embedding has 64
  // weights and an output only, a block 128 and two boundaries, the head 64 and an input.
  CHECK(costs.of().widening(0, true).value == Approx((64 + 32) * 8 + 32 * 9));
  CHECK(costs.of().widening(0, false).value == Approx((64 + 32) * 8));
  CHECK(costs.of().widening(1, true).value == Approx((128 + 64) * 8 + 32 * 9));
  CHECK(costs.of().widening(3, true).value == Approx((64 + 32) * 8));
  CHECK(costs.of().widening(3, false).value == Approx((64 + 32) * 8 + 32 * 9));
  costs.plan.workload.precision = platform::Precision::f32;
  CHECK(costs.of().widening(1, true) == Seconds{});
}

}  // namespace
}  // namespace offstage::scheduler
