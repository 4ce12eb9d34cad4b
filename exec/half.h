#pragma once

#include <bit>
#include <cstdint>

#include <c10/util/Half.h>

// 16-bit floating point, one way and the other, bit for bit as PyTorch rounds.
namespace offstage::exec {

inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// To nearest, ties to even; a NaN stays one.
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  const std::uint32_t half = 0x7FFFU + ((bits >> 16) & 1U);
  return static_cast<std::uint16_t>((bits + half) >> 16);
}

inline float from_f16(std::uint16_t bits) { return c10::detail::fp16_ieee_to_fp32_value(bits); }
inline std::uint16_t to_f16(float value) { return c10::detail::fp16_ieee_from_fp32_value(value); }

}  // namespace offstage::exec
