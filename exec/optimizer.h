#pragma once

#include <cstdint>
#include <vector>

#include "exec/planes.h"

// AdamW over flat shards of f32 weights, in place, in one pass over memory. It runs on the CPU
// socket that owns a shard while the virtual GPUs are on the next sub-model. Every element is
// computed by itself with correctly rounded operations and none fused, so the bits do not depend on
// the instruction set, on how a tensor is sharded or on the number of threads.
//
//   adamw_update(settings, step, ShardF32{master, m, v, gradient, count});
namespace offstage::exec {

struct AdamW {
  float learning_rate = 0.0F;
  float beta1 = 0.0F;
  float beta2 = 0.0F;
  float epsilon = 0.0F;
  float weight_decay = 0.0F;  // decoupled: master *= 1 - learning_rate * weight_decay
};

// Note [Moments in bf16 are rounded at random]
// A bf16 number has 8 significant bits: rounded to the nearest, a change of less than 1/512 is lost
// every time. With beta2 = 0.999 no v would ever fall, since one step takes a thousandth of it.
// Rounded up or down at random, in proportion to the nearness, the mean is kept and changes add up.
// The random bits are a hash of training seed, step and the parameter's place in the model, and
// nothing else: the same whatever the shards, threads and order of work. The weight is moved by the
// moments before they are rounded.

// Master: float*, or Planes (planes.h) beside gradients in bf16. Moment, Gradient: float, or
// std::uint16_t, which is bf16.
template <typename Master, typename Moment, typename Gradient>
struct AdamWShard {
  Master master = {};
  Moment* m = nullptr;
  Moment* v = nullptr;
  const Gradient* gradient = nullptr;
  std::int64_t count = 0;
  float gradient_scale = 1.0F;  // clipping's; 1 changes no bit
  // Both for bf16 moments. The first: of the shard's first element among the model's parameters.
  // Parameters 2^32 apart are rounded alike, which does no harm.
  std::int64_t first_parameter = 0;
  std::uint64_t seed = 0;
};
// Bytes moved for a parameter, gradients read and the others read and written: 28, 20, 26, 18.
using ShardF32 = AdamWShard<float*, float, float>;
using ShardF32Moments16 = AdamWShard<float*, std::uint16_t, float>;
using ShardPlanes = AdamWShard<Planes, float, std::uint16_t>;
using ShardPlanesMoments16 = AdamWShard<Planes, std::uint16_t, std::uint16_t>;

enum class InstructionSet { baseline, avx2, avx512 };
const char* to_string(InstructionSet set);
// Those this CPU has, the widest last.
std::vector<InstructionSet> instruction_sets();
InstructionSet widest_instruction_set();

// Shard: one of the four above. step counts from 1 (bias correction). Several threads may update
// disjoint ranges at one time. Precondition: the CPU has the instruction set.
// Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, algorithm 2.
template <typename Shard>
void adamw_update(const AdamW& settings, std::int64_t step, const Shard& shard,
                  InstructionSet set = widest_instruction_set());

}  // namespace offstage::exec
