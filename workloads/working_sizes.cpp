#include "workloads/working_sizes.h"

#include <algorithm>

#include "workloads/operations.h"

namespace offstage::workloads {
namespace {

constexpr std::int64_t kFloat = 4;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

struct CpuTiles {
  std::int64_t queries = 0, keys = 0;
};

// Tiles of LibTorch's fused attention on the CPU.
// Source: PyTorch aten/src/ATen/native/cpu/FlashAttentionKernel.cpp, flash_attention_kernel_impl.
CpuTiles cpu_tiles(std::int64_t sequence) {
  std::int64_t queries = 32;
  if (sequence >= 768) {
    queries = 256;
  } else if (sequence >= 192) {
    queries = 64;
  }
  return {std::min(queries, sequence), std::min<std::int64_t>(512, sequence)};
}

// Per thread: scores, row maxima and sums, one tile of the result; compute tasks run on one thread.
// Source: the same file, cpu_flash_attention, size_per_thread.
std::int64_t cpu_forward_scratch(std::int64_t sequence, std::int64_t head_dim) {
  const CpuTiles tiles = cpu_tiles(sequence);
  return kFloat * tiles.queries * (tiles.keys + 2 + head_dim);
}

// Per thread: scores and their gradients; and the row sums.
// Source: the same file, cpu_flash_attention_backward.
std::int64_t cpu_backward_scratch(std::int64_t sequence) {
  const CpuTiles tiles = cpu_tiles(sequence);
  return kFloat * (2 * tiles.queries * tiles.keys + tiles.queries);
}

// The queries' gradient accumulated in f32, row sums, and, with grouped queries, gradients of keys
// and values for every query head. Sequences are rounded to 128, head sizes to 32.
// Source: FlashAttention 2, csrc/flash_attn/flash_api.cpp, mha_bwd.
std::int64_t gpu_backward_scratch(const Model& model, const Batch& batch) {
  const std::int64_t rows = batch.micro_batch * model.heads * round_up(batch.sequence_length, 128);
  std::int64_t bytes = kFloat * rows * (round_up(model.head_dim, 32) + 1);
  if (model.kv_heads != model.heads) {
    bytes += 2 * element_size(batch.precision) * batch.micro_batch * batch.sequence_length *
             model.heads * model.head_dim;
  }
  return bytes;
}

}  // namespace

WorkingSizes::WorkingSizes(const Model& model, const Batch& batch)
    : f32(batch.precision == platform::Precision::f32),
      element(element_size(batch.precision)),
      tokens(batch.micro_batch * batch.sequence_length),
      hidden(matrix(tokens, model.hidden)),
      query(matrix(tokens, model.heads * model.head_dim)),
      key(matrix(tokens, model.kv_heads * model.head_dim)),
      qkv(query + 2 * key),
      ffn(matrix(tokens, model.ffn)),
      statistic(kFloat * tokens),
      logsumexp(kFloat * tokens * model.heads) {
  if (f32) {
    repeated_key = model.kv_heads == model.heads ? 0 : query;
    attention_scratch = cpu_forward_scratch(batch.sequence_length, model.head_dim);
    attention_backward_scratch = cpu_backward_scratch(batch.sequence_length);
  } else {
    attention_backward_scratch = gpu_backward_scratch(model, batch);
  }
}

}  // namespace offstage::workloads
