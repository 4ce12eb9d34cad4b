#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "exec/layer.h"

// Building blocks of the layers on LibTorch tensors: flat weights by name, linear maps, norms and
// attention, each with the backward that autograd would run. Included by sources of this folder
// only.
namespace offstage::exec {

// A [rows, columns] tensor over memory that the caller owns.
at::Tensor view_of(const float* data, std::int64_t rows, std::int64_t columns);
at::Tensor view_of(const float* data, std::int64_t elements);
at::Tensor empty(std::int64_t rows, std::int64_t columns);

// Where a named tensor lies in a layer's flat weights.
struct Slice {
  std::int64_t offset = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;  // 1 for vectors
};
// Empty when the layer has no tensor of that name.
std::optional<Slice> find_slice(const workloads::LayerClass& parameters, const std::string& name);
// Errors: OFFSTAGE_CHECK when absent: the layer table and this executor disagree.
Slice slice(const workloads::LayerClass& parameters, const std::string& name);

// Adds the gradient of one micro-batch to the flat gradients at `offset`, or puts it there.
void add_gradient(const Gradients& gradients, std::int64_t offset, const at::Tensor& gradient);

// y = x W + b. GPT-2's checkpoints store W as [in, out], Llama's as [out, in].
class Linear {
 public:
  enum class Stored { in_out, out_in };
  // `name` without ".weight"; the bias is used when the layer has one. adds_bias = false: forward
  // leaves it out, since another rank adds it to the sum over the ranks; it has its gradient here
  // nevertheless.
  Linear(const workloads::LayerClass& parameters, const std::string& name, Stored stored,
         bool adds_bias = true);

  at::Tensor forward(const float* weights, const at::Tensor& x) const;
  // Into y, overwriting it.
  void forward_into(const float* weights, const at::Tensor& x, at::Tensor& y) const;
  // dx = dy W^T.
  at::Tensor input_gradient(const float* weights, const at::Tensor& dy) const;
  // dW = x^T dy and db = sum of dy over tokens.
  void weight_gradient(const at::Tensor& x, const at::Tensor& dy, const Gradients& gradients) const;

 private:
  at::Tensor matrix(const float* weights) const;  // [in, out], whatever is stored
  Slice weight_;
  std::optional<Slice> bias_;
  Stored stored_;
  bool adds_bias_;
};

// Makes each rank's part of a sum the sum, in place.
void sum_over_ranks(const LayerContext& context, const at::Tensor& part);

struct NormStatistics {
  at::Tensor mean;            // [tokens, 1]; layer norm only
  at::Tensor reciprocal_std;  // [tokens, 1]
};

// Layer norm or RMS norm, as the model says.
class NormLayer {
 public:
  NormLayer(const workloads::Model& model, const workloads::LayerClass& parameters,
            const std::string& name);

  // statistics: null when there will be no backward.
  at::Tensor forward(const float* weights, const at::Tensor& x, NormStatistics* statistics) const;

  struct Pass {
    const float* weights = nullptr;
    const at::Tensor& x;
    NormStatistics statistics;  // used up
    at::Tensor dy;              // used up
    // The gradient that reaches x past the norm; undefined when there is none.
    at::Tensor residual;
    // Where the sum goes; undefined: into a tensor of its own.
    at::Tensor out;
    const Gradients& gradients;
  };
  // The gradient of x: residual + that through the norm.
  at::Tensor backward(Pass pass) const;

 private:
  at::Tensor layer_norm_backward(Pass& pass) const;
  at::Tensor rms_norm_backward(Pass& pass) const;
  bool rms_;
  double epsilon_;
  Slice weight_;
  std::optional<Slice> bias_;
};

// Causal attention. q, k, v: [batch, heads, sequence, head_dim], any strides but the last.
struct AttentionOutput {
  at::Tensor out;        // [batch, heads, sequence, head_dim], stored batch, sequence, head first
  at::Tensor logsumexp;  // [batch, heads, sequence], stored likewise
};
AttentionOutput attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);
struct AttentionGradient {
  at::Tensor q, k, v;
};
AttentionGradient attention_backward(const at::Tensor& dout, const AttentionGradient& inputs,
                                     const AttentionOutput& forward);

// The element-wise activation, anew or in place, and the gradient of its input in place of that of
// its output.
at::Tensor activated(workloads::Activation activation, const at::Tensor& x);
void activate(workloads::Activation activation, at::Tensor& x);
void activate_backward(workloads::Activation activation, const at::Tensor& x, at::Tensor& dy);

}  // namespace offstage::exec
