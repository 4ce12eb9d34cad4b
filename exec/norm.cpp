#include <array>
#include <utility>

#include <ATen/ops/add.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sum.h>

#include "exec/tensor_ops.h"

namespace offstage::exec {
namespace {

// n * weight with n = x * r and r = rsqrt(mean(x^2) + epsilon), as torch::rms_norm composes it.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double epsilon,
                    NormStatistics* statistics) {
  at::Tensor r = at::mean(at::pow(x, 2), -1, /*keepdim=*/true);
  r.add_(epsilon).rsqrt_();
  at::Tensor y = at::mul(x, r);
  y.mul_(weight);
  if (statistics != nullptr) {
    statistics->reciprocal_std = std::move(r);
  }
  return y;
}

}  // namespace

NormLayer::NormLayer(const workloads::Model& model, const workloads::LayerClass& parameters,
                     const std::string& name)
    : rms_(model.norm == workloads::Norm::rms_norm),
      epsilon_(model.norm_epsilon),
      weight_(slice(parameters, name + ".weight")),
      bias_(find_slice(parameters, name + ".bias")) {}

at::Tensor NormLayer::forward(const float* weights, const at::Tensor& x,
                              NormStatistics* statistics) const {
  const at::Tensor weight = view_of(weights + weight_.offset, weight_.rows);
  if (rms_) {
    return rms_norm(x, weight, epsilon_, statistics);
  }
  std::optional<at::Tensor> bias;
  if (bias_) {
    bias = view_of(weights + bias_->offset, bias_->rows);
  }
  auto [y, mean, reciprocal_std] = at::native_layer_norm(x, {weight_.rows}, weight, bias, epsilon_);
  if (statistics != nullptr) {
    *statistics = {std::move(mean), std::move(reciprocal_std)};
  }
  return y;
}

at::Tensor NormLayer::backward(Pass pass) const {
  return rms_ ? rms_norm_backward(pass) : layer_norm_backward(pass);
}

at::Tensor NormLayer::layer_norm_backward(Pass& pass) const {
  const at::Tensor weight = view_of(pass.weights + weight_.offset, weight_.rows);
  std::optional<at::Tensor> bias;
  if (bias_) {
    bias = view_of(pass.weights + bias_->offset, bias_->rows);
  }
  auto [dx, dweight, dbias] = at::native_layer_norm_backward(
      pass.dy, pass.x, {weight_.rows}, pass.statistics.mean, pass.statistics.reciprocal_std, weight,
      bias, {true, true, bias_.has_value()});
  pass.dy.reset();
  add_gradient(pass.gradients, weight_.offset, dweight);
  if (bias_) {
    add_gradient(pass.gradients, bias_->offset, dbias);
  }
  at::Tensor& out = pass.out.defined() ? pass.out : dx;
  if (pass.residual.defined()) {
    return at::add_out(out, pass.residual, dx);
  }
  return pass.out.defined() ? out.copy_(dx) : dx;
}

// Autograd meets x three times: in the residual, in x * r, and inside r. It adds them in this
// order.
at::Tensor NormLayer::rms_norm_backward(Pass& pass) const {
  const at::Tensor weight = view_of(pass.weights + weight_.offset, weight_.rows);
  const at::Tensor& x = pass.x;
  const at::Tensor& r = pass.statistics.reciprocal_std;
  at::Tensor& dn = pass.dy;
  {
    at::Tensor normalised = at::mul(x, r);
    add_gradient(pass.gradients, weight_.offset, at::sum(normalised.mul_(dn), 0));
  }
  dn.mul_(weight);
  at::Tensor dr = at::sum(at::mul(dn, x), -1, /*keepdim=*/true);
  // d rsqrt(u) = -1/2 r^3; then the mean spreads it over the hidden axis, and the square's 2 x.
  at::Tensor dmean = dr.mul_(-0.5).mul_(at::pow(r, 3)).div_(x.size(1));
  at::Tensor through_r = at::mul(x, 2).mul_(dmean);
  dn.mul_(r);
  if (pass.residual.defined()) {
    dn.add_(pass.residual);
  }
  if (!pass.out.defined()) {
    return dn.add_(through_r);
  }
  return at::add_out(pass.out, dn, through_r);
}

}  // namespace offstage::exec
