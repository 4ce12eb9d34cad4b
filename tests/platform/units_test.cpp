#include "platform/units.h"

#include <catch2/catch.hpp>

using namespace offstage::platform;

TEST_CASE("a size over a rate is a time", "[platform][unit]") {
  // 1 GB at 25 GB/s: 1 / 25 s.
  CHECK((Bytes{1'000'000'000} / BytesPerSecond{25e9}).value == Approx(0.04));
  // 3 TFLOP at 1.5 TFLOP/s.
  CHECK((Flops{3e12} / FlopsPerSecond{1.5e12}).value == Approx(2.0));
}

TEST_CASE("units add, compare and scale only among themselves", "[platform][unit]") {
  CHECK(Bytes{3} + 2 * Bytes{4} == Bytes{11});
  CHECK(gibibytes(1) - mebibytes(1) == mebibytes(1023));
  CHECK(Seconds{1.0} < Seconds{1.5} * 2.0);
  CHECK(Seconds{3.0} / Seconds{1.5} == 2.0);
}
