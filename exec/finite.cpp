#include "exec/finite.h"

#include <bit>
#include <cstdint>

namespace offstage::exec {

bool all_finite(std::span<const float> values) {
  // An exponent of ones only. No branch in the loop, so that it vectorises.
  constexpr std::uint32_t kExponent = 0x7F800000U;
  std::uint32_t found = 0;
  for (const float value : values) {
    found |= (std::bit_cast<std::uint32_t>(value) & kExponent) == kExponent ? 1U : 0U;
  }
  return found == 0;
}

}  // namespace offstage::exec
