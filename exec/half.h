#pragma once

#include <cstdint>

#include <c10/util/Half.h>

// f16, one way and the other, bit for bit as PyTorch rounds.
namespace offstage::exec {

inline float from_f16(std::uint16_t bits) { return c10::detail::fp16_ieee_to_fp32_value(bits); }
inline std::uint16_t to_f16(float value) { return c10::detail::fp16_ieee_from_fp32_value(value); }

}  // namespace offstage::exec
