#include "platform/machine.h"

#include <catch2/catch.hpp>

#include "platform/collective.h"

using namespace offstage::platform;

TEST_CASE("a collective's time is straight in log-log and extended at the ends",
          "[platform][unit]") {
  Machine machine;
  machine.collectives = {
      {CollectiveKind::all_reduce,
       {{{Bytes{1'000}, {10e-6}}, {Bytes{100'000}, {40e-6}}}, "test", Confidence::high}}};
  const auto time = [&](std::int64_t bytes) {
    return collective_time(machine, CollectiveKind::all_reduce, {bytes}).value;
  };
  CHECK(time(0) == 0.0);
  // Below the first point its latency, at the points their times.
  CHECK(time(1) == 10e-6);
  CHECK(time(1'000) == 10e-6);
  CHECK(time(100'000) == Approx(40e-6).epsilon(1e-12));
  // Half of the way from 1e3 to 1e5 in logarithms is 1e4; half from 10 to 40 is sqrt(400) = 20.
  CHECK(time(10'000) == Approx(20e-6).epsilon(1e-12));
  // Above the last point its bandwidth: ten times the bytes, ten times the time.
  CHECK(time(1'000'000) == Approx(400e-6).epsilon(1e-12));
}
