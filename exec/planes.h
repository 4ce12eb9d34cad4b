#pragma once

#include <bit>
#include <cstdint>
#include <span>

// f32 numbers as two planes of 16 bits: the upper one is the number rounded to bf16, which a GPU
// fetches as it is, the lower one what is missing. Together they take the 4 bytes of f32.
namespace offstage::exec {

// Note [Two planes hold every f32]
// bits = 65536 hi + lo, modulo 2^32, with lo in [-32768, 32767]. To any bits there is one such
// pair: lo is the lower half read as a signed number, and hi the upper half, one more when lo is
// negative. So both ways are exact, for all 2^32 patterns; planes_test.cpp goes through them.
//
// Read as f32, hi is the number rounded to the nearest bf16: bits count magnitudes upwards for
// either sign, denormals too, and hi goes up from lo = -32768, the half, on: half away from zero.
// Numbers beyond bf16's largest by half a place or more become infinity, as in any rounding.
// Ties to even would need lo = +32768 for half of the ties.
//
// A NaN stays a NaN in hi unless its upper half is that of an infinity (hi then reads infinity) or
// its lower half is 0x8000 or more under an upper one of 0x7FFF or 0xFFFF (zero). Neither comes
// from arithmetic: x86 makes 0xFFC00000, and hands on the quiet NaN of an operand, of which those
// of bf16 gradients have a lower half of 0.
struct Planes {
  std::uint16_t* hi = nullptr;
  std::int16_t* lo = nullptr;
};

// Of the elements from number `first` on; a missing lower plane stays missing.
inline Planes behind(Planes planes, std::int64_t first) {
  return {planes.hi + first, planes.lo != nullptr ? planes.lo + first : nullptr};
}

inline std::uint16_t upper_plane(float value) {
  return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) + 0x8000U) >> 16U);
}

inline std::int16_t lower_plane(float value) {
  return static_cast<std::int16_t>(
      static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) & 0xFFFFU));
}

inline float from_planes(std::uint16_t hi, std::int16_t lo) {
  // The conversion of lo extends its sign: modulo 2^32 that subtracts.
  return std::bit_cast<float>((static_cast<std::uint32_t>(hi) << 16U) +
                              static_cast<std::uint32_t>(static_cast<std::int32_t>(lo)));
}

// The same for arrays, both of the span's length.
void to_planes(std::span<const float> values, Planes planes);
void from_planes(Planes planes, std::span<float> values);

// f32 to bf16, to nearest, ties to even (bf16.h), and back, which is exact. `to` may begin where
// `from` does when narrowing.
void narrow(const float* from, std::int64_t count, std::uint16_t* to);
void widen(const std::uint16_t* from, std::int64_t count, float* to);

}  // namespace offstage::exec
