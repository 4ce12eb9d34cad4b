#pragma once

#include <cstdint>
#include <span>

#include "exec/parallel.h"

// The norm of all gradients of a step, for clipping. Sums of squares are taken in double and in an
// order that depends on nothing but the shard's length, so that the norm has the same bits whatever
// the threads and the timing.
namespace offstage::exec {

// Note [Order of a norm]
// A shard is summed in blocks of 65,536 elements, a block in eight partial sums (element i in sum
// i mod 8), these from the first to the last, and the blocks from the first to the last. A square
// of an f32 number is exact in double, so that only these additions round.
double sum_of_squares(std::span<const float> gradient, Workers& workers);
// Of gradients in bf16.
double sum_of_squares(std::span<const std::uint16_t> gradient, Workers& workers);

// What gradients are multiplied with so that their norm is at most `most`: min(1, most / norm).
// `squares`: the sums of all shards; added from the first to the last.
// Source: Pascanu, Mikolov and Bengio, On the difficulty of training recurrent neural networks,
// algorithm 1.
float clip_scale(std::span<const double> squares, double most);

}  // namespace offstage::exec
