#pragma once

#include <bit>
#include <cstdint>

// bf16 is the upper half of f32.
namespace offstage::exec {

inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

// To nearest, ties to even, as PyTorch rounds; a NaN stays one.
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (value != value) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  const std::uint32_t half = 0x7FFFU + ((bits >> 16U) & 1U);
  return static_cast<std::uint16_t>((bits + half) >> 16U);
}

}  // namespace offstage::exec
