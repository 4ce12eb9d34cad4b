#include "exec/optimizer.h"

#include <bit>
#include <cmath>

#include "exec/bf16.h"

namespace offstage::exec {
namespace {

struct Factors {
  float decay, beta1, one_minus_beta1, beta2, one_minus_beta2, step_size, root_correction, epsilon;
};

Factors factors_of(const AdamW& settings, std::int64_t step) {
  // In double once, so that rounding happens once per factor and not per step.
  const double t = static_cast<double>(step);
  const double correction1 = 1.0 - std::pow(static_cast<double>(settings.beta1), t);
  const double correction2 = 1.0 - std::pow(static_cast<double>(settings.beta2), t);
  const double rate = settings.learning_rate;
  return {.decay = static_cast<float>(1.0 - rate * settings.weight_decay),
          .beta1 = settings.beta1,
          .one_minus_beta1 = static_cast<float>(1.0 - settings.beta1),
          .beta2 = settings.beta2,
          .one_minus_beta2 = static_cast<float>(1.0 - settings.beta2),
          .step_size = static_cast<float>(rate / correction1),
          .root_correction = static_cast<float>(1.0 / std::sqrt(correction2)),
          .epsilon = settings.epsilon};
}

// Up when `random`, of 16 bits, is large enough to carry. What is bf16 already stays, infinities
// too; a NaN must not carry over into a number.
inline std::uint16_t rounded(float value, std::uint32_t random) {
  constexpr std::uint32_t kSign = 0x80000000U, kInfinity = 0x7F800000U, kNan = 0x7FC0U;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t upper = (bits + random) >> 16U;
  return static_cast<std::uint16_t>((bits & ~kSign) > kInfinity ? kNan : upper);
}

// Each input has its own output, and each bit of it depends on all bits of the input.
// Source: C. Wellons, Prospecting for Hash Functions (2018), function lowbias32.
inline std::uint32_t hash(std::uint32_t x) {
  x = (x ^ (x >> 16U)) * 0x7FEB352DU;
  x = (x ^ (x >> 15U)) * 0x846CA68BU;
  return x ^ (x >> 16U);
}

// One key for a step of a training.
// Source: Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators (2014): splitmix64.
std::uint32_t key_of(std::uint64_t seed, std::int64_t step) {
  std::uint64_t x = seed + static_cast<std::uint64_t>(step) * 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return static_cast<std::uint32_t>(x ^ (x >> 31U));
}

inline float load(const float* from, std::int64_t i) { return from[i]; }
inline float load(const std::uint16_t* from, std::int64_t i) { return from_bf16(from[i]); }
inline float load(const Planes& from, std::int64_t i) {
  return from_planes(from.hi[i], from.lo[i]);
}

inline void store(float value, float* to, std::int64_t i) { to[i] = value; }
inline void store(float value, const Planes& to, std::int64_t i) {
  to.hi[i] = upper_plane(value);
  to.lo[i] = lower_plane(value);
}

// Note [Any instruction set, the same bits]
// The loop is compiled for each instruction set. Each operation on each element is one correctly
// rounded IEEE operation whichever is taken: this file is compiled without contraction to fused
// multiply-adds, and no operation crosses elements. Reciprocals and reciprocal roots, which would
// be faster and differ, are not used: memory is slower than division and root in any case.
template <typename Master, typename Moment, typename Gradient>
inline __attribute__((always_inline)) void update_elements(
    const Factors& factors, std::uint32_t key, const AdamWShard<Master, Moment, Gradient>& shard) {
  constexpr bool kRounds = sizeof(Moment) == sizeof(std::uint16_t);
  // Copies, which no store can change.
  const Factors f = factors;
  const Master master = shard.master;
  Moment* const m = shard.m;
  Moment* const v = shard.v;
  const Gradient* const gradient = shard.gradient;
  const float scale = shard.gradient_scale;
  const auto first = static_cast<std::uint32_t>(shard.first_parameter);
  const std::int64_t count = shard.count;
#pragma GCC ivdep  // the arrays do not overlap
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = load(gradient, i) * scale;
    const float new_m = f.beta1 * load(m, i) + f.one_minus_beta1 * g;
    const float new_v = f.beta2 * load(v, i) + f.one_minus_beta2 * (g * g);
    const float root = std::sqrt(new_v) * f.root_correction + f.epsilon;
    store(load(master, i) * f.decay - f.step_size * (new_m / root), master, i);
    if constexpr (kRounds) {
      const std::uint32_t random = hash((first + static_cast<std::uint32_t>(i)) ^ key);
      m[i] = rounded(new_m, random & 0xFFFFU);
      v[i] = rounded(new_v, random >> 16U);
    } else {
      m[i] = new_m;
      v[i] = new_v;
    }
  }
}

template <typename Shard>
void update_baseline(const Factors& factors, std::uint32_t key, const Shard& shard) {
  update_elements(factors, key, shard);
}

template <typename Shard>
__attribute__((target("avx2"))) void update_avx2(const Factors& factors, std::uint32_t key,
                                                 const Shard& shard) {
  update_elements(factors, key, shard);
}

template <typename Shard>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) void update_avx512(
    const Factors& factors, std::uint32_t key, const Shard& shard) {
  update_elements(factors, key, shard);
}

}  // namespace

const char* to_string(InstructionSet set) {
  switch (set) {
    case InstructionSet::baseline:
      return "baseline";
    case InstructionSet::avx2:
      return "avx2";
    case InstructionSet::avx512:
      return "avx512";
  }
  return "";
}

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets{InstructionSet::baseline};
  if (__builtin_cpu_supports("avx2")) {
    sets.push_back(InstructionSet::avx2);
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    sets.push_back(InstructionSet::avx512);
  }
  return sets;
}

InstructionSet widest_instruction_set() { return instruction_sets().back(); }

template <typename Shard>
void adamw_update(const AdamW& settings, std::int64_t step, const Shard& shard,
                  InstructionSet set) {
  const Factors factors = factors_of(settings, step);
  const std::uint32_t key = key_of(shard.seed, step);
  switch (set) {
    case InstructionSet::baseline:
      return update_baseline(factors, key, shard);
    case InstructionSet::avx2:
      return update_avx2(factors, key, shard);
    case InstructionSet::avx512:
      return update_avx512(factors, key, shard);
  }
}

template void adamw_update(const AdamW&, std::int64_t, const ShardF32&, InstructionSet);
template void adamw_update(const AdamW&, std::int64_t, const ShardF32Moments16&, InstructionSet);
template void adamw_update(const AdamW&, std::int64_t, const ShardPlanes&, InstructionSet);
template void adamw_update(const AdamW&, std::int64_t, const ShardPlanesMoments16&, InstructionSet);

}  // namespace offstage::exec
