#include "platform/format.h"

#include <catch2/catch.hpp>

using namespace offstage::platform;

TEST_CASE("sizes are written in binary multiples with three digits", "[platform][unit]") {
  CHECK(to_text(Bytes{0}) == "0 B");
  CHECK(to_text(Bytes{1023}) == "1023 B");
  CHECK(to_text(Bytes{1024}) == "1.00 KiB");
  CHECK(to_text(Bytes{1536}) == "1.50 KiB");
  // 42405855232 / 2^30 = 39.4935...
  CHECK(to_text(Bytes{42405855232}) == "39.5 GiB");
  CHECK(to_text(Bytes{-2048}) == "-2.00 KiB");
  // 1023.9 MiB rounds to 1024 MiB, which is 1.00 GiB.
  CHECK(to_text(gibibytes(1) - Bytes{100'000}) == "1.00 GiB");
}

TEST_CASE("rates, work and counts are written in decimal multiples", "[platform][unit]") {
  CHECK(to_text(BytesPerSecond{26.2e9}) == "26.2 GB/s");
  CHECK(to_text(FlopsPerSecond{312e12}) == "312 TFLOP/s");
  CHECK(to_text(FlopsPerSecond{999.9e9}) == "1.00 TFLOP/s");
  CHECK(to_text(Flops{1.2e15}) == "1.20 PFLOP");
  CHECK(count_text(124439808) == "124 M");
  CHECK(count_text(6738415616) == "6.74 B");
  CHECK(count_text(17) == "17");
  CHECK(percent_text(0.0832) == "8.3 %");
}

TEST_CASE("times are written in the unit people would choose", "[platform][unit]") {
  CHECK(to_text(Seconds{0.0}) == "0 s");
  CHECK(to_text(Seconds{3e-9}) == "3.00 ns");
  CHECK(to_text(Seconds{2.4e-6}) == "2.40 us");
  CHECK(to_text(Seconds{0.0415}) == "41.5 ms");
  CHECK(to_text(Seconds{3.2}) == "3.20 s");
  CHECK(to_text(Seconds{1800}) == "30 min");
  CHECK(to_text(Seconds{7500}) == "2 h 05 min");
  CHECK(to_text(Seconds{432000}) == "5.00 days");
}
