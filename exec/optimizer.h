#pragma once

#include <cstdint>

// AdamW over flat shards of f32 weights, in place, in one pass over memory. It runs on the CPU
// socket that owns a shard while the virtual GPUs are on the next sub-model. Every element is
// computed by itself with correctly rounded operations and none fused, so the bits do not depend on
// the instruction set, on how a tensor is sharded or on the number of threads.
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
  float gradient_scale = 1.0F;  // clipping's; 1 changes no bit
};

// step counts from 1 (bias correction). Several threads may update disjoint ranges at one time.
// Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, algorithm 2.
void adamw_update(const AdamW& settings, std::int64_t step, const AdamWShard& shard);

// Note [Moments in bf16 are rounded at random]
// A bf16 number has 8 significant bits: rounded to the nearest, a change of less than 1/512 is lost
// every time. With beta2 = 0.999 no v would ever fall, since one step takes a thousandth of it.
// Rounded up or down at random, in proportion to the nearness, the mean is kept and changes add up.
// The random bits are a hash of training seed, step and the parameter's place in the model, and
// nothing else: the same whatever the shards, threads and order of work. The weight is moved by the
// moments before they are rounded.
struct AdamWShardBf16 {
  float* master = nullptr;
  std::uint16_t* m = nullptr;  // the upper halves of f32
  std::uint16_t* v = nullptr;
  const float* gradient = nullptr;
  std::int64_t count = 0;
  float gradient_scale = 1.0F;
  // Of the shard's first element among the model's parameters. Parameters 2^32 apart are rounded
  // alike, which does no harm.
  std::int64_t first_parameter = 0;
  std::uint64_t seed = 0;
};

void adamw_update(const AdamW& settings, std::int64_t step, const AdamWShardBf16& shard);

}  // namespace offstage::exec
