#include "exec/planes.h"

#include "exec/bf16.h"

// Compiled for several instruction sets and chosen at load time: no operation here rounds but by
// whole numbers, which are the same in all.
#define OFFSTAGE_ANY_WIDTH __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))

namespace offstage::exec {

OFFSTAGE_ANY_WIDTH void to_planes(std::span<const float> values, Planes planes) {
  const auto count = static_cast<std::int64_t>(values.size());
  const float* const __restrict__ from = values.data();
  std::uint16_t* const __restrict__ hi = planes.hi;
  std::int16_t* const __restrict__ lo = planes.lo;
  for (std::int64_t i = 0; i < count; ++i) {
    hi[i] = upper_plane(from[i]);
    lo[i] = lower_plane(from[i]);
  }
}

OFFSTAGE_ANY_WIDTH void from_planes(Planes planes, std::span<float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  float* const __restrict__ to = values.data();
  const std::uint16_t* const __restrict__ hi = planes.hi;
  const std::int16_t* const __restrict__ lo = planes.lo;
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = from_planes(hi[i], lo[i]);
  }
}

// Loads of a vector's width lie before its stores, and later loads behind them.
OFFSTAGE_ANY_WIDTH void narrow(const float* from, std::int64_t count, std::uint16_t* to) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = to_bf16(from[i]);
  }
}

OFFSTAGE_ANY_WIDTH void widen(const std::uint16_t* from, std::int64_t count, float* to) {
  const std::uint16_t* const __restrict__ in = from;
  float* const __restrict__ out = to;
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = from_bf16(in[i]);
  }
}

}  // namespace offstage::exec
