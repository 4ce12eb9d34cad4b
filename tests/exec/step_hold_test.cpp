#include "exec/step_hold.h"

#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/builders.h"

namespace offstage::exec::testing {
namespace {

using offstage::testing::delay;
using offstage::testing::GraphBuilder;
using scheduler::TaskId;
using Tasks = std::vector<TaskId>;

// Tasks 0 and 1 of step 0, 2 and 3 of step 1, 4 of step 2.
const scheduler::TaskGraph& three_steps(GraphBuilder& builder) {
  const auto engine = builder.engine("engine");
  for (const std::uint32_t step : {0U, 0U, 1U, 1U, 2U}) {
    builder.task({engine}, {}, delay(0.0), {}, step);
  }
  return builder.graph();
}

struct ThreeSteps {
  GraphBuilder builder;
  StepHold hold{three_steps(builder)};
};

TEST_CASE("a hold admits tasks of steps that have begun and keeps the later ones", "[exec][unit]") {
  ThreeSteps steps;
  StepHold& hold = steps.hold;
  CHECK_FALSE(hold.latest_step().has_value());
  CHECK(hold.admit(0));
  hold.hold();
  CHECK(hold.admit(1));
  CHECK_FALSE(hold.admit(2));
  CHECK_FALSE(hold.admit(4));
  CHECK(hold.latest_step() == 0);
  CHECK(hold.holds(2));
  CHECK_FALSE(hold.holds(1));
  hold.complete(0);
  hold.complete(1);
  // Step 0 has ended: nothing more needs to begin.
  CHECK(hold.let_steps_end().empty());
  CHECK(hold.release() == Tasks{2, 4});
  CHECK_FALSE(hold.holds_any());
  CHECK(hold.admit(2));
  CHECK(hold.latest_step() == 1);
}

TEST_CASE("a run held before its first task begins none", "[exec][unit]") {
  ThreeSteps steps;
  steps.hold.hold();
  CHECK_FALSE(steps.hold.admit(0));
  CHECK(steps.hold.let_steps_end().empty());
  CHECK(steps.hold.release() == Tasks{0});
}

TEST_CASE("where a step can't end, the next one of those held begins", "[exec][unit]") {
  // Task 1 of step 0 is in line behind tasks of steps 1 and 2.
  ThreeSteps steps;
  StepHold& hold = steps.hold;
  CHECK(hold.admit(0));
  hold.hold();
  hold.complete(0);
  CHECK_FALSE(hold.admit(4));
  CHECK_FALSE(hold.admit(2));
  CHECK(hold.let_steps_end() == Tasks{4, 2});
  CHECK(hold.latest_step() == 1);
  CHECK_FALSE(hold.admit(4));
  CHECK(hold.admit(2));
  CHECK(hold.admit(1));
}

TEST_CASE("a hold for good is not released", "[exec][unit]") {
  ThreeSteps steps;
  CHECK(steps.hold.admit(0));
  steps.hold.end();
  CHECK_FALSE(steps.hold.admit(2));
  CHECK(steps.hold.release().empty());
  CHECK(steps.hold.ending());
  CHECK(steps.hold.holding());
  CHECK(steps.hold.holds(2));
}

}  // namespace
}  // namespace offstage::exec::testing
