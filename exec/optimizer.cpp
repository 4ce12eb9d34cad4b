#include "exec/optimizer.h"

#include <cmath>

namespace offstage::exec {
namespace {

struct Factors {
  float decay, beta1, one_minus_beta1, beta2, one_minus_beta2, step_size, root_correction, epsilon;
};

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
  for (std::int64_t i = 0; i < shard.count; ++i) {
    const float g = gradient[i];
    m[i] = f.beta1 * m[i] + f.one_minus_beta1 * g;
    v[i] = f.beta2 * v[i] + f.one_minus_beta2 * (g * g);
    const float root = std::sqrt(v[i]) * f.root_correction + f.epsilon;
    master[i] = master[i] * f.decay - f.step_size * (m[i] / root);
  }
}

}  // namespace

void adamw_update(const AdamW& settings, std::int64_t step, const AdamWShard& shard) {
  // In double once, so that rounding happens once per factor and not per step.
  const double t = static_cast<double>(step);
  const double correction1 = 1.0 - std::pow(static_cast<double>(settings.beta1), t);
  const double correction2 = 1.0 - std::pow(static_cast<double>(settings.beta2), t);
  const double rate = settings.learning_rate;
  update_all({.decay = static_cast<float>(1.0 - rate * settings.weight_decay),
              .beta1 = settings.beta1,
              .one_minus_beta1 = static_cast<float>(1.0 - settings.beta1),
              .beta2 = settings.beta2,
              .one_minus_beta2 = static_cast<float>(1.0 - settings.beta2),
              .step_size = static_cast<float>(rate / correction1),
              .root_correction = static_cast<float>(1.0 / std::sqrt(correction2)),
              .epsilon = settings.epsilon},
             shard);
}

}  // namespace offstage::exec
