#include "exec/decay_runs.h"

#include <tuple>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/exec/small_models.h"
#include "tests/exec/training_setup.h"
#include "tests/support/bare_machine.h"

namespace offstage::exec::testing {
namespace {

using scheduler::Plan;
using scheduler::Range;
using Run = std::tuple<std::int64_t, std::int64_t, bool>;

std::vector<Run> runs(const Plan& plan, std::size_t submodel, Range range, bool all = false) {
  std::vector<Run> found;
  DecayRuns(plan, all).in(submodel, range, [&](const DecayRun& run) {
    found.emplace_back(run.range.begin, run.range.end, run.decays);
  });
  return found;
}

TEST_CASE("matrices decay, norms and biases do not", "[exec][unit]") {
  const Plan plan = make_plan(offstage::testing::bare_machine(1),
                              workload(byte_model(llama_model(false)), 1), scheduler::Strategy{});
  const auto& block = plan.table.layer(1);
  // A Llama block's tensors, of which the two norms have one dimension.
  std::vector<Run> expected;
  std::int64_t begin = 0;
  int flat = 0;
  for (const auto& tensor : block.parameters) {
    const std::int64_t end = begin + tensor.elements();
    const bool decays = tensor.shape.size() == 2;
    flat += decays ? 0 : 1;
    if (!expected.empty() && std::get<2>(expected.back()) == decays) {
      std::get<1>(expected.back()) = end;
    } else {
      expected.emplace_back(begin, end, decays);
    }
    begin = end;
  }
  CHECK(flat == 2);
  CHECK(runs(plan, 1, {0, begin}) == expected);
  CHECK(runs(plan, 1, {0, begin}, true) == std::vector<Run>{{0, begin, true}});
  // The head is untied: its final norm of `hidden` elements and its matrix, in either order.
  const auto& head = plan.submodels.back();
  const auto of_head = runs(plan, plan.submodels.size() - 1, {0, head.parameters});
  REQUIRE(of_head.size() == 2);
  std::int64_t undecayed = 0;
  for (const auto& [first, last, decays] : of_head) undecayed += decays ? 0 : last - first;
  CHECK(undecayed == plan.table.model.hidden);
}

TEST_CASE("a part of a buffer gets the parts of its runs, borrowed elements counted",
          "[exec][unit]") {
  const Plan plan = make_plan(offstage::testing::bare_machine(1),
                              workload(byte_model(llama_model(true)), 1), scheduler::Strategy{});
  // A tied head stores its norm alone, behind the matrix it borrows.
  const auto& head = plan.submodels.back();
  const std::size_t last = plan.submodels.size() - 1;
  CHECK(runs(plan, last, {head.borrowed, head.moved()}) ==
        std::vector<Run>{{head.borrowed, head.moved(), false}});
  CHECK(runs(plan, last, {head.borrowed + 3, head.borrowed + 5}) ==
        std::vector<Run>{{head.borrowed + 3, head.borrowed + 5, false}});
  // Of the embedding's matrix, which decays.
  CHECK(runs(plan, 0, {7, 9}) == std::vector<Run>{{7, 9, true}});
  CHECK(runs(plan, 0, {7, 7}).empty());
}

}  // namespace
}  // namespace offstage::exec::testing
