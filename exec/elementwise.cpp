#include "exec/elementwise.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::exec {

WordRange words_here(const LayerContext& context) {
  if (context.rank.alone()) {
    return {0, context.model.vocab, context.model.vocab};
  }
  return {context.rank.first_word(), context.rank.end_word(), context.rank.vocab()};
}

void rotate(const RotaryTable& table, Turn turn, const LayerContext& context, std::int64_t heads,
            float* rows) {
  const std::int64_t half = table.half;
  const float sign = turn == Turn::forward ? 1.0F : -1.0F;
  for (std::int64_t t = 0; t < context.tokens(); ++t) {
    const std::int64_t position = t % context.sequence_length;
    const float* const c = table.cosine.data() + position * half;
    const float* const s = table.sine.data() + position * half;
    for (std::int64_t head = 0; head < heads; ++head) {
      float* const __restrict__ low = rows + (t * heads + head) * 2 * half;
      float* const __restrict__ high = low + half;
      for (std::int64_t i = 0; i < half; ++i) {
        const float a = low[i];
        const float b = high[i];
        low[i] = a * c[i] - sign * (b * s[i]);
        high[i] = b * c[i] + sign * (a * s[i]);
      }
    }
  }
}

void embed(const LayerContext& context, const float* words, const float* positions,
           const std::int64_t* inputs, float* output) {
  const std::int64_t hidden = context.model.hidden;
  const WordRange here = words_here(context);
  for (std::int64_t t = 0; t < context.tokens(); ++t) {
    OFFSTAGE_CHECK(inputs[t] >= 0 && inputs[t] < here.vocab,
                   fmt::format("token {} at {}, vocabulary {}", inputs[t], t, here.vocab));
    float* const out = output + t * hidden;
    if (!here.has(inputs[t])) {
      std::fill_n(out, hidden, 0.0F);
      continue;
    }
    const float* const word = words + (inputs[t] - here.first) * hidden;
    if (positions == nullptr) {
      std::copy_n(word, hidden, out);
      continue;
    }
    const float* const position = positions + t % context.sequence_length * hidden;
    for (std::int64_t i = 0; i < hidden; ++i) {
      out[i] = word[i] + position[i];
    }
  }
}

void embed_backward(const LayerContext& context, const std::int64_t* inputs, const float* dy,
                    const EmbeddingScratch& scratch, float* gradient) {
  const std::int64_t hidden = context.model.hidden;
  const std::int64_t tokens = context.tokens();
  const WordRange here = words_here(context);
  std::int64_t* const order = scratch.order;
  std::iota(order, order + tokens, 0);
  // By word, and within a word by place in the batch: that is the order torch's kernel adds in.
  std::sort(order, order + tokens, [inputs](std::int64_t a, std::int64_t b) {
    return inputs[a] != inputs[b] ? inputs[a] < inputs[b] : a < b;
  });
  for (std::int64_t begin = 0; begin < tokens;) {
    const std::int64_t word = inputs[order[begin]];
    if (!here.has(word)) {
      ++begin;
      continue;
    }
    std::fill_n(scratch.sum, hidden, 0.0F);
    std::int64_t next = begin;
    for (; next < tokens && inputs[order[next]] == word; ++next) {
      const float* const row = dy + order[next] * hidden;
      for (std::int64_t i = 0; i < hidden; ++i) {
        scratch.sum[i] += row[i];
      }
    }
    float* const target = gradient + (word - here.first) * hidden;
    for (std::int64_t i = 0; i < hidden; ++i) {
      target[i] += scratch.sum[i];
    }
    begin = next;
  }
}

}  // namespace offstage::exec
