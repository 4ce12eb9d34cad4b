#include "calibration/statistics.h"

#include <catch2/catch.hpp>

using namespace offstage::calibration;

TEST_CASE("a summary is the median with what lies far off dropped", "[calibration][unit]") {
  // Median of all seven: 4. Distances 3 2 1 0 1 2 96, their median 2: the limit is 3 x 1.4826 x 2
  // = 8.9, so 100 goes. Left are 1 to 6: median 3.5, quartiles 2.25 and 4.75, spread 1.25 / 3.5.
  const Summary summary = summarise({4, 1, 2, 100, 3, 5, 6});
  CHECK(summary.median == Approx(3.5));
  CHECK(summary.kept == 6);
  CHECK(summary.dropped == 1);
  CHECK(summary.spread == Approx(1.25 / 3.5));
}

TEST_CASE("equal samples keep the odd one out", "[calibration][unit]") {
  // The median distance is 0: a limit of 0 would drop everything that differs at all.
  const Summary summary = summarise({2, 2, 2, 2.001});
  CHECK(summary.median == 2.0);
  CHECK(summary.kept == 4);
  CHECK(summary.spread == Approx(0.00025 / 2 / 2).margin(1e-4));
}

TEST_CASE("one sample is its own summary", "[calibration][unit]") {
  const Summary summary = summarise({0.25});
  CHECK(summary.median == 0.25);
  CHECK(summary.kept == 1);
  CHECK(summary.spread == 0.0);
}

TEST_CASE("a source tells date, number and spread", "[calibration][unit]") {
  CHECK(source_of({.median = 1.0, .spread = 0.013, .kept = 12, .dropped = 2}, "2026-01-05") ==
        "calibrate 2026-01-05: median of 12, 2 outliers dropped, spread 1.3 %");
}
