#pragma once

#include <cstdint>

#include "workloads/layer_table.h"

// Bytes of the tensors that the scripts of working_set.h name, for one model and micro-batch, and
// the scratch memory of the fused attention kernels.
namespace offstage::workloads {

struct WorkingSizes {
  WorkingSizes(const Model& model, const Batch& batch);

  bool f32 = false;
  std::int64_t element = 0;
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;     // [tokens, hidden]
  std::int64_t query = 0;      // [tokens, heads x head_dim]
  std::int64_t key = 0;        // [tokens, kv_heads x head_dim]
  std::int64_t qkv = 0;        // all three
  std::int64_t ffn = 0;        // [tokens, ffn]
  std::int64_t statistic = 0;  // [tokens] f32: a norm's mean, or its reciprocal deviation
  std::int64_t logsumexp = 0;  // [tokens, heads] f32

  // [rows, columns] in the compute precision.
  std::int64_t matrix(std::int64_t rows, std::int64_t columns) const {
    return element * rows * columns;
  }
  // A weight's gradient before it is added to the accumulated one. In bf16 the product's epilogue
  // accumulates and nothing is held.
  std::int64_t weight_gradient(std::int64_t rows, std::int64_t columns) const {
    return f32 ? element * rows * columns : 0;
  }

  // Keys, or values, copied once for every query head: LibTorch's CPU kernel knows no groups.
  std::int64_t repeated_key = 0;
  // Inside the attention kernels, beside inputs and results.
  std::int64_t attention_scratch = 0;
  std::int64_t attention_backward_scratch = 0;
};

}  // namespace offstage::workloads
