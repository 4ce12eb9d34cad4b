#pragma once

#include <cstdint>
#include <vector>

#include "exec/layer.h"

// Element-wise work that LibTorch would do in several passes with temporaries, done in one and in
// place, with the same roundings: one multiplication or addition at a time, none fused.
namespace offstage::exec {

// cos and sin of position x frequency, [sequence, head_dim / 2] each.
struct RotaryTable {
  std::int64_t half = 0;
  std::vector<float> cosine, sine;
};
// Source: Su et al. 2021, RoFormer; frequencies theta^(-2 i / head_dim), in f32 as Llama's are.
RotaryTable make_rotary_table(std::int64_t sequence_length, std::int64_t head_dim, double theta);

// Turns every head of rows [tokens, heads x head_dim] by its position, in place; or the gradient
// back.
enum class Turn { forward, backward };
void rotate(const RotaryTable& table, Turn turn, const LayerContext& context, std::int64_t heads,
            float* rows);

// The words whose vectors a GPU holds: all, or in a tensor split its rank's.
struct WordRange {
  std::int64_t first = 0, end = 0;
  std::int64_t vocab = 0;  // all there are
  bool has(std::int64_t word) const { return word >= first && word < end; }
};
WordRange words_here(const LayerContext& context);

// output[t] = words[inputs[t]] (+ positions[t mod sequence], unless null), and 0 for words that
// another rank holds: the sum over the ranks is then what one GPU alone has, bit for bit.
void embed(const LayerContext& context, const float* words, const float* positions,
           const std::int64_t* inputs, float* output);

// The sum of every token's rows of dy is added to (or put into) that token's row of `gradient`.
// order: room for [tokens]; sum: room for [hidden].
struct EmbeddingScratch {
  std::int64_t* order = nullptr;
  float* sum = nullptr;
};
void embed_backward(const LayerContext& context, const std::int64_t* inputs, const float* dy,
                    const EmbeddingScratch& scratch, float* gradient);

}  // namespace offstage::exec
