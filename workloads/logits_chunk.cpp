#include "workloads/logits_chunk.h"

#include <algorithm>

namespace offstage::workloads {

std::int64_t logits_chunk(std::int64_t vocab, std::int64_t tokens) {
  // f32 logits of a chunk: with vocabularies of 32,000 to 256,000 these are 512 to 4,096 tokens,
  // from where on a matrix product gains little (the GEMM tables in platform/catalog).
  constexpr std::int64_t kMostBytes = std::int64_t{512} << 20;
  constexpr std::int64_t kFloat = 4;
  constexpr std::int64_t kFewestTokens = 128;
  std::int64_t chunk = kFewestTokens;
  while (2 * chunk * vocab * kFloat <= kMostBytes) chunk *= 2;
  return std::min(chunk, tokens);
}

}  // namespace offstage::workloads
