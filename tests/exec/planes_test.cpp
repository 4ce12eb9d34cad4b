#include "exec/planes.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

#include "exec/bf16.h"

using namespace offstage::exec;

namespace {

float of_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

float read_as_bf16(std::uint16_t hi) { return of_bits(static_cast<std::uint32_t>(hi) << 16U); }

}  // namespace

TEST_CASE("the upper plane is the number rounded to bf16, half away from zero", "[exec][unit]") {
  // bf16 numbers at 1 are 2^-7 apart. Half of that more, 1.00390625 = 0x3F808000, goes up, and as
  // much to -1 goes down; a bit less stays.
  CHECK(upper_plane(of_bits(0x3F808000U)) == 0x3F81U);
  CHECK(lower_plane(of_bits(0x3F808000U)) == -32768);
  CHECK(upper_plane(of_bits(0xBF808000U)) == 0xBF81U);
  CHECK(upper_plane(of_bits(0x3F807FFFU)) == 0x3F80U);
  CHECK(lower_plane(of_bits(0x3F807FFFU)) == 32767);
  CHECK(lower_plane(1.0F) == 0);
  // A denormal: 0x00018000 is one and a half times the smallest bf16 denormal, twice is away.
  CHECK(upper_plane(of_bits(0x00018000U)) == 2U);
  // The smallest negative denormal is -0 and a remainder of 1.
  CHECK(upper_plane(of_bits(0x80000001U)) == 0x8000U);
  CHECK(lower_plane(of_bits(0x80000001U)) == 1);
  CHECK(upper_plane(INFINITY) == 0x7F80U);
  CHECK(lower_plane(INFINITY) == 0);
  // f32's largest is nearer to the next power of two than to bf16's largest: infinity, exactly
  // undone by a remainder of -1.
  CHECK(upper_plane(of_bits(0x7F7FFFFFU)) == 0x7F80U);
  CHECK(lower_plane(of_bits(0x7F7FFFFFU)) == -1);
  // The NaN that x86 makes is one in bf16 too.
  CHECK(std::isnan(read_as_bf16(upper_plane(of_bits(0xFFC00000U)))));
}

TEST_CASE("planes give back all 2^32 patterns of f32", "[exec][slow]") {
  constexpr std::uint32_t kBlock = 1U << 16U;
  std::vector<std::uint32_t> bits(kBlock), back(kBlock);
  std::vector<float> values(kBlock);
  std::vector<std::uint16_t> hi(kBlock);
  std::vector<std::int16_t> lo(kBlock);
  std::uint64_t wrong = 0, badly_rounded = 0;
  for (std::uint32_t upper = 0; upper < kBlock; ++upper) {
    std::iota(bits.begin(), bits.end(), upper << 16U);
    std::memcpy(values.data(), bits.data(), kBlock * sizeof(float));
    to_planes(values, {hi.data(), lo.data()});
    from_planes({hi.data(), lo.data()}, values);
    std::memcpy(back.data(), values.data(), kBlock * sizeof(float));
    wrong += bits == back ? 0 : 1;
    // Numbers of one upper half lie between this bf16 number and the next: the lower half of them
    // goes to the one, the upper half to the other.
    for (std::uint32_t i = 0; i < kBlock; ++i) {
      const auto nearest = static_cast<std::uint16_t>(upper + (i < kBlock / 2 ? 0U : 1U));
      badly_rounded += hi[i] == nearest ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
  CHECK(badly_rounded == 0);
}

TEST_CASE("arrays are narrowed in place and widened as single numbers are", "[exec][unit]") {
  std::vector<float> values;
  for (int i = 0; i < 1003; ++i) {
    values.push_back(std::ldexp(1.0F + static_cast<float>(i) / 700.0F, i % 40 - 20));
  }
  values[7] = of_bits(0x3F808000U);  // a tie: to even, 1
  values[8] = NAN;
  std::vector<float> in_place = values;
  auto* const narrowed = reinterpret_cast<std::uint16_t*>(in_place.data());
  narrow(in_place.data(), 1003, narrowed);
  std::vector<std::uint16_t> bf16(1003);
  std::memcpy(bf16.data(), in_place.data(), bf16.size() * sizeof(std::uint16_t));
  CHECK(bf16[7] == 0x3F80U);
  CHECK(std::isnan(read_as_bf16(bf16[8])));
  std::vector<float> wide(1003);
  widen(bf16.data(), 1003, wide.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    REQUIRE(bf16[i] == to_bf16(values[i]));
    REQUIRE((i == 8 || wide[i] == read_as_bf16(bf16[i])));
  }
}
