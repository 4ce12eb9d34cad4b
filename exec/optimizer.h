#pragma once

#include <cstdint>

// AdamW over flat shards of f32 state, in place, in one pass over memory. It runs on the CPU socket
// that owns a shard while the virtual GPUs are on the next sub-model. Every element is computed by
// itself with correctly rounded operations and none fused, so the bits do not depend on the
// instruction set, on how a tensor is sharded or on the number of threads.
//
//   adamw_update(settings, step, {master, m, v, gradient, count});
namespace offstage::exec {

struct AdamW {
  float learning_rate = 0.0F;
  float beta1 = 0.0F;
  float beta2 = 0.0F;
  float epsilon = 0.0F;
  float weight_decay = 0.0F;  // decoupled: master *= 1 - learning_rate * weight_decay
};

struct AdamWShard {
  float* master = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  const float* gradient = nullptr;
  std::int64_t count = 0;
};

// step counts from 1 (bias correction). Several threads may update disjoint ranges at one time.
// Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, algorithm 2.
void adamw_update(const AdamW& settings, std::int64_t step, const AdamWShard& shard);

}  // namespace offstage::exec
