#include "report/trace_comparison.h"

#include <utility>
#include <vector>

#include <catch2/catch.hpp>

using namespace offstage;
using report::TraceContents;
using report::TracedTask;

namespace {

// A fetch and a forward in each step, one after the other; the lengths in seconds.
TraceContents run_of(const std::vector<std::pair<double, double>>& steps) {
  TraceContents trace;
  double now = 0.0;
  std::uint32_t step = 0;
  for (const auto& [fetch, forward] : steps) {
    trace.tasks.push_back({"fetch weights S0 gpu0", "fetch", step, 0, {now}, {fetch}});
    now += fetch;
    trace.tasks.push_back({"forward S0 m0 gpu0", "forward", step, 1, {now}, {forward}});
    now += forward;
    ++step;
  }
  return trace;
}

}  // namespace

TEST_CASE("a trace compared with itself has no error", "[report][unit]") {
  const TraceContents trace = run_of({{1, 2}, {1, 2}});
  const auto comparison = report::compare_traces(trace, trace);
  CHECK(comparison.step_error == 0.0);
  REQUIRE(comparison.by_kind.size() == 2);
  CHECK(comparison.by_kind[0].error == 0.0);
  CHECK(comparison.only_in_a == 0);
  CHECK(comparison.only_in_b == 0);
}

TEST_CASE("kinds are compared over all steps but the first and the last", "[report][unit]") {
  // b without its first and its last step: fetch (1 + 3) / 2 = 2, forward 4. a, of two steps, has
  // the second only: fetch 1, forward 5. Errors against b: |1 - 2| / 2 = 0.5 and |5 - 4| / 4 =
  // 0.25. Steps of a take 6; those of b 5 and 7, whose median is 6.
  const auto comparison =
      report::compare_traces(run_of({{9, 9}, {1, 5}}), run_of({{7, 7}, {1, 4}, {3, 4}, {8, 8}}));
  REQUIRE(comparison.by_kind.size() == 2);
  CHECK(comparison.by_kind[0].kind == "fetch");
  CHECK(comparison.by_kind[0].a.value == Approx(1));
  CHECK(comparison.by_kind[0].b.value == Approx(2));
  CHECK(comparison.by_kind[0].error == Approx(0.5));
  CHECK(comparison.by_kind[1].error == Approx(0.25));
  CHECK(comparison.step_a.value == Approx(6));
  CHECK(comparison.step_b.value == Approx(6));
  CHECK(comparison.step_error == Approx(0).margin(1e-12));
}

TEST_CASE("one step each is compared whole", "[report][unit]") {
  // 3 s against 4 s: 1/4.
  const auto comparison = report::compare_traces(run_of({{1, 2}}), run_of({{2, 2}}));
  CHECK(comparison.step_error == Approx(0.25));
  CHECK(comparison.by_kind[0].error == Approx(0.5));
  REQUIRE(comparison.worst);
  CHECK(comparison.worst->name == "fetch weights S0 gpu0");
}

TEST_CASE("tasks of one name within a step are told apart by their order", "[report][unit]") {
  TraceContents a = run_of({{1, 2}});
  a.tasks.push_back({"fetch weights S0 gpu0", "fetch", 0, 2, {3.0}, {1.0}});
  TraceContents b = a;
  b.tasks.back().duration = {2.0};
  const auto comparison = report::compare_traces(a, b);
  REQUIRE(comparison.worst);
  CHECK(comparison.worst->name == "fetch weights S0 gpu0 #2");
  CHECK(comparison.by_kind[0].tasks == 2);
  // 2 s against 3 s.
  CHECK(comparison.by_kind[0].error == Approx(1.0 / 3.0));
}

TEST_CASE("tasks that only one trace has are counted and left out", "[report][unit]") {
  TraceContents a = run_of({{1, 2}});
  TraceContents b = a;
  a.tasks.push_back({"update S0 gpu0", "update", 0, 2, {3.0}, {1.0}});
  b.tasks.erase(b.tasks.begin());
  const auto comparison = report::compare_traces(a, b);
  CHECK(comparison.only_in_a == 2);
  CHECK(comparison.only_in_b == 0);
  REQUIRE(comparison.by_kind.size() == 1);
  CHECK(comparison.by_kind[0].kind == "forward");
}

TEST_CASE("time against none is an error of one", "[report][unit]") {
  const auto comparison = report::compare_traces(run_of({{1, 2}}), run_of({{0, 2}}));
  CHECK(comparison.by_kind[0].error == 1.0);
}
