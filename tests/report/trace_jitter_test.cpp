#include "report/trace_jitter.h"

#include <catch2/catch.hpp>

#include "platform/error.h"

using namespace offstage;
using report::TraceContents;

namespace {

// One forward and two fetches of one name in each step; the forward's lengths are given, the
// fetches take 1 and 10 s.
TraceContents run_of(const std::vector<double>& forwards) {
  TraceContents trace;
  trace.file = "trace.json";
  std::uint32_t step = 0;
  for (const double forward : forwards) {
    trace.tasks.push_back({"fetch weights S0 gpu0", "fetch", step, 0, {}, {1.0}});
    trace.tasks.push_back({"fetch weights S0 gpu0", "fetch", step, 1, {}, {10.0}});
    trace.tasks.push_back({"forward S0 m0 gpu0", "forward", step, 2, {}, {forward}});
    ++step;
  }
  return trace;
}

}  // namespace

TEST_CASE("jitter is a task's time beside its median, the first step left out", "[report][unit]") {
  // Without the first: 2, 4, 8 with median 4, so 0.5, 1 and 2. The middle of 21 quantiles is 1; the
  // sixth, a quarter of the way, lies halfway between 0.5 and 1.
  const auto jitter = report::jitter_of(run_of({100, 2, 4, 8}));
  REQUIRE(jitter.count("forward") == 1);
  const auto& forward = jitter.at("forward");
  REQUIRE(forward.size() == 21);
  CHECK(forward.front() == Approx(0.5));
  CHECK(forward[5] == Approx(0.75));
  CHECK(forward[10] == Approx(1.0));
  CHECK(forward.back() == Approx(2.0));
  // Two tasks of one name are told apart: neither varies.
  CHECK(jitter.at("fetch").front() == Approx(1.0));
  CHECK(jitter.at("fetch").back() == Approx(1.0));
}

TEST_CASE("a trace of few steps shows no jitter", "[report][unit]") {
  CHECK_THROWS_WITH(report::jitter_of(run_of({1, 2, 3})),
                    Catch::Contains("trace.json") && Catch::Contains("at least 4"));
}
