#include "exec/tensor_ops.h"

#include <array>
#include <utility>

#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/sum.h>
#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::exec {
namespace {

void activate_into(workloads::Activation activation, const at::Tensor& x, at::Tensor& y) {
  switch (activation) {
    case workloads::Activation::gelu:
      at::gelu_out(y, x, "none");
      return;
    case workloads::Activation::gelu_tanh:
      at::gelu_out(y, x, "tanh");
      return;
    case workloads::Activation::silu:
      at::silu_out(y, x);
      return;
    case workloads::Activation::relu:
      break;
  }
  OFFSTAGE_CHECK(false, "require_supported lets no other activation through");
}

}  // namespace

at::Tensor view_of(const float* data, std::int64_t rows, std::int64_t columns) {
  // LibTorch has no tensor of const elements; callers write only to views of memory they may write.
  return at::from_blob(const_cast<float*>(data), {rows, columns}, at::kFloat);
}

at::Tensor view_of(const float* data, std::int64_t elements) {
  return at::from_blob(const_cast<float*>(data), {elements}, at::kFloat);
}

at::Tensor empty(std::int64_t rows, std::int64_t columns) {
  return at::empty({rows, columns}, at::kFloat);
}

std::optional<Slice> find_slice(const workloads::LayerClass& parameters, const std::string& name) {
  std::int64_t offset = 0;
  for (const workloads::ParameterTensor& tensor : parameters.parameters) {
    if (tensor.name == name) {
      return Slice{offset, tensor.shape[0], tensor.shape.size() > 1 ? tensor.shape[1] : 1};
    }
    offset += tensor.elements();
  }
  return std::nullopt;
}

Slice slice(const workloads::LayerClass& parameters, const std::string& name) {
  const std::optional<Slice> found = find_slice(parameters, name);
  OFFSTAGE_CHECK(found.has_value(),
                 fmt::format("layer '{}' has no tensor '{}'", parameters.name, name));
  return *found;
}

void add_gradient(const Gradients& gradients, std::int64_t offset, const at::Tensor& gradient) {
  at::Tensor target = at::from_blob(gradients.own + offset, gradient.sizes(), at::kFloat);
  if (gradients.accumulate) {
    target.add_(gradient);
  } else {
    target.copy_(gradient);
  }
}

void sum_over_ranks(const LayerContext& context, const at::Tensor& part) {
  context.rank.sum(part.data_ptr<float>(), part.numel());
}

Linear::Linear(const workloads::LayerClass& parameters, const std::string& name, Stored stored,
               bool adds_bias)
    : weight_(slice(parameters, name + ".weight")),
      bias_(find_slice(parameters, name + ".bias")),
      stored_(stored),
      adds_bias_(adds_bias) {}

at::Tensor Linear::matrix(const float* weights) const {
  at::Tensor stored = view_of(weights + weight_.offset, weight_.rows, weight_.columns);
  return stored_ == Stored::in_out ? stored : stored.t();
}

at::Tensor Linear::forward(const float* weights, const at::Tensor& x) const {
  at::Tensor y = empty(x.size(0), stored_ == Stored::in_out ? weight_.columns : weight_.rows);
  forward_into(weights, x, y);
  return y;
}

void Linear::forward_into(const float* weights, const at::Tensor& x, at::Tensor& y) const {
  if (bias_ && adds_bias_) {
    at::addmm_out(y, view_of(weights + bias_->offset, bias_->rows), x, matrix(weights));
  } else {
    at::mm_out(y, x, matrix(weights));
  }
}

at::Tensor Linear::input_gradient(const float* weights, const at::Tensor& dy) const {
  return at::mm(dy, matrix(weights).t());
}

void Linear::weight_gradient(const at::Tensor& x, const at::Tensor& dy,
                             const Gradients& gradients) const {
  add_gradient(gradients, weight_.offset,
               stored_ == Stored::in_out ? at::mm(x.t(), dy) : at::mm(dy.t(), x));
  if (bias_) {
    add_gradient(gradients, bias_->offset, at::sum(dy, 0));
  }
}

AttentionOutput attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, true);
  return {std::move(out), std::move(logsumexp)};
}

AttentionGradient attention_backward(const at::Tensor& dout, const AttentionGradient& inputs,
                                     const AttentionOutput& forward) {
  auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      dout, inputs.q, inputs.k, inputs.v, forward.out, forward.logsumexp, 0.0, true);
  return {std::move(dq), std::move(dk), std::move(dv)};
}

at::Tensor activated(workloads::Activation activation, const at::Tensor& x) {
  at::Tensor y = at::empty_like(x);
  activate_into(activation, x, y);
  return y;
}

void activate(workloads::Activation activation, at::Tensor& x) { activate_into(activation, x, x); }

void activate_backward(workloads::Activation activation, const at::Tensor& x, at::Tensor& dy) {
  switch (activation) {
    case workloads::Activation::gelu:
      at::gelu_backward_out(dy, dy, x, "none");
      return;
    case workloads::Activation::gelu_tanh:
      at::gelu_backward_out(dy, dy, x, "tanh");
      return;
    case workloads::Activation::silu:
      at::silu_backward_out(dy, dy, x);
      return;
    case workloads::Activation::relu:
      break;
  }
  OFFSTAGE_CHECK(false, "require_supported lets no other activation through");
}

}  // namespace offstage::exec
