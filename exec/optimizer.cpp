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

// Note [Any instruction set, the same bits]
// The loop is compiled for several instruction sets and chosen at load time. Each operation on
// each element is one correctly rounded IEEE operation whichever is taken: this file is compiled
// without contraction to fused multiply-adds, and no operation crosses elements.
__attribute__((target_clones("default", "avx2", "arch=x86-64-v4"))) void update_all(
    const Factors& factors, const AdamWShard& shard) {
  const Factors f = factors;
  float* const __restrict__ master = shard.master;
  float* const __restrict__ m = shard.m;
  float* const __restrict__ v = shard.v;
  const float* const __restrict__ gradient = shard.gradient;
  const float scale = shard.gradient_scale;
  for (std::int64_t i = 0; i < shard.count; ++i) {
    const float g = gradient[i] * scale;
    m[i] = f.beta1 * m[i] + f.one_minus_beta1 * g;
    v[i] = f.beta2 * v[i] + f.one_minus_beta2 * (g * g);
    const float root = std::sqrt(v[i]) * f.root_correction + f.epsilon;
    master[i] = master[i] * f.decay - f.step_size * (m[i] / root);
  }
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

// As update_all, with Note [Any instruction set, the same bits].
__attribute__((target_clones("default", "avx2", "arch=x86-64-v4"))) void update_all_bf16(
    const Factors& factors, std::uint32_t key, const AdamWShardBf16& shard) {
  const Factors f = factors;
  float* const __restrict__ master = shard.master;
  std::uint16_t* const __restrict__ m = shard.m;
  std::uint16_t* const __restrict__ v = shard.v;
  const float* const __restrict__ gradient = shard.gradient;
  const float scale = shard.gradient_scale;
  const auto first = static_cast<std::uint32_t>(shard.first_parameter);
  for (std::int64_t i = 0; i < shard.count; ++i) {
    const float g = gradient[i] * scale;
    const float new_m = f.beta1 * from_bf16(m[i]) + f.one_minus_beta1 * g;
    const float new_v = f.beta2 * from_bf16(v[i]) + f.one_minus_beta2 * (g * g);
    const float root = std::sqrt(new_v) * f.root_correction + f.epsilon;
    master[i] = master[i] * f.decay - f.step_size * (new_m / root);
    const std::uint32_t random = hash((first + static_cast<std::uint32_t>(i)) ^ key);
    m[i] = rounded(new_m, random & 0xFFFFU);
    v[i] = rounded(new_v, random >> 16U);
  }
}

}  // namespace

void adamw_update(const AdamW& settings, std::int64_t step, const AdamWShard& shard) {
  update_all(factors_of(settings, step), shard);
}

void adamw_update(const AdamW& settings, std::int64_t step, const AdamWShardBf16& shard) {
  update_all_bf16(factors_of(settings, step), key_of(shard.seed, step), shard);
}

}  // namespace offstage::exec
