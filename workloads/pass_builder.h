#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/operations.h"

// Collects a layer's forward operations in order and, with each, the backward operations it will
// need; the backward pass is the reverse of the forward one.
namespace offstage::workloads {

struct LinearShape {
  std::int64_t out = 0, in = 0;
  bool bias = false;
};

class PassBuilder {
 public:
  PassBuilder(const Model& model, const Batch& batch);

  // tokens x in -> tokens x out, with its weight's and its bias's gradients.
  void linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias);
  // The same in chunks of `rows` tokens.
  void chunked_linear(const std::string& name, const LinearShape& shape, std::int64_t rows);
  // The same for `rows` rows spread evenly over up to `experts` weights of their own.
  void expert_linear(const std::string& name, std::int64_t out, std::int64_t in, std::int64_t rows);
  // qk_dim and value_dim differ only with latent attention. The kernel is the batch's.
  void attention(std::int64_t qk_dim, std::int64_t value_dim);
  void norm(const std::string& name, std::int64_t width);
  void activation(std::int64_t rows, std::int64_t width);
  void rotary(std::int64_t width);
  // With dropout of what is added, where the batch's software has it.
  void residual_add(const std::string& name);
  // Of an activation so wide, where the batch's software has it.
  void dropout(const std::string& name, std::int64_t width);
  // Bytes each way, one kernel each way.
  void memory(const std::string& name, std::int64_t forward_bytes, std::int64_t backward_bytes);
  void forward_memory(const std::string& name, std::int64_t bytes);
  // Only in f32: keys and values copied for every query head, and their gradients summed.
  void repeat_keys();
  // Only in f32: work that a fused kernel or a product's epilogue does in bf16.
  void f32_backward(const std::string& name, std::int64_t bytes, int kernels);

  std::int64_t tokens() const { return tokens_; }
  std::int64_t element() const { return element_; }

  Passes take();

 private:
  void fused_attention(std::int64_t qk_dim, std::int64_t value_dim);
  void unfused_attention(std::int64_t qk_dim, std::int64_t value_dim);
  bool f32() const { return batch_.precision == platform::Precision::f32; }

  const Model& model_;
  Batch batch_;
  std::int64_t tokens_ = 0;
  std::int64_t element_ = 0;
  std::vector<Operation> forward_;
  std::vector<std::vector<Operation>> backward_groups_;  // in forward order
};

}  // namespace offstage::workloads
