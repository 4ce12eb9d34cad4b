#include <algorithm>
#include <utility>

#include <ATen/ops/_log_softmax.h>
#include <ATen/ops/_log_softmax_backward_data.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/nll_loss_backward.h>
#include <ATen/ops/nll_loss_forward.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/sum.h>

#include "exec/elementwise.h"
#include "exec/tensor_ops.h"

// The two ends of a model: word vectors (and learned positions) in, logits and loss out.
namespace offstage::exec {
namespace {

// nll_loss's own default: no token is left out of the loss, as none is negative.
constexpr std::int64_t kIgnoredToken = -100;

bool is_gpt2(const LayerContext& context) {
  return context.model.family == workloads::Family::gpt2;
}

class NormedHead final : public HeadLayer {
 public:
  NormedHead(const LayerContext& context, const workloads::LayerClass& parameters)
      : context_(context),
        norm_(context.model, parameters, is_gpt2(context) ? "ln_f" : "norm"),
        matrix_(find_slice(parameters, "lm_head.weight")) {}

  double loss(const Weights& weights, const float* input,
              const std::int64_t* targets) const override {
    const at::Tensor x = view_of(input, context_.tokens(), context_.model.hidden);
    at::Tensor log_p = log_probabilities(weights, norm_.forward(weights.own, x, nullptr));
    return std::get<0>(summed_loss(log_p, targets)).item<float>();
  }

  double backward(const Weights& weights, const Pass& pass) const override {
    const at::Tensor x = view_of(pass.input, context_.tokens(), context_.model.hidden);
    NormStatistics statistics;
    at::Tensor normed = norm_.forward(weights.own, x, &statistics);
    at::Tensor log_p = log_probabilities(weights, normed);
    auto [loss, total_weight] = summed_loss(log_p, pass.targets);
    at::Tensor scale = at::full({}, 1.0, at::kFloat).div_(pass.loss_tokens);
    at::Tensor dlogits = at::nll_loss_backward(scale, log_p, token_view(pass.targets), {},
                                               at::Reduction::Sum, kIgnoredToken, total_weight);
    at::_log_softmax_backward_data_out(dlogits, dlogits, log_p, 1, at::kFloat);
    log_p.reset();
    add_matrix_gradient(pass.gradients, at::mm(dlogits.t(), normed));
    normed.reset();
    at::Tensor dnormed = at::mm(dlogits, matrix(weights));
    dlogits.reset();
    norm_.backward({.weights = weights.own,
                    .x = x,
                    .statistics = std::move(statistics),
                    .dy = std::move(dnormed),
                    .residual = {},
                    .out = view_of(pass.input_gradient, context_.tokens(), context_.model.hidden),
                    .gradients = pass.gradients});
    return loss.item<float>();
  }

 private:
  // [vocab, hidden]
  at::Tensor matrix(const Weights& weights) const {
    const float* data = matrix_ ? weights.own + matrix_->offset : weights.tied;
    return view_of(data, context_.model.vocab, context_.model.hidden);
  }
  at::Tensor log_probabilities(const Weights& weights, const at::Tensor& normed) const {
    at::Tensor logits = at::mm(normed, matrix(weights).t());
    // In place: each row is read before it is written.
    at::_log_softmax_out(logits, logits, 1, false);
    return logits;
  }
  at::Tensor token_view(const std::int64_t* tokens) const {
    return at::from_blob(const_cast<std::int64_t*>(tokens), {context_.tokens()}, at::kLong);
  }
  std::tuple<at::Tensor, at::Tensor> summed_loss(const at::Tensor& log_p,
                                                 const std::int64_t* targets) const {
    return at::nll_loss_forward(log_p, token_view(targets), {}, at::Reduction::Sum, kIgnoredToken);
  }
  void add_matrix_gradient(const Gradients& gradients, const at::Tensor& gradient) const {
    if (matrix_) {
      add_gradient(gradients, matrix_->offset, gradient);
    } else {
      add_gradient({.own = gradients.tied, .accumulate = gradients.accumulate}, 0, gradient);
    }
  }

  LayerContext context_;
  NormLayer norm_;
  std::optional<Slice> matrix_;
};

}  // namespace

EmbeddingLayer::EmbeddingLayer(const LayerContext& context, const workloads::LayerClass& parameters)
    : context_(context),
      word_offset_(
          slice(parameters, is_gpt2(context) ? "wte.weight" : "embed_tokens.weight").offset),
      parameter_count_(parameters.parameter_count) {
  if (is_gpt2(context)) {
    position_offset_ = slice(parameters, "wpe.weight").offset;
  }
}

void EmbeddingLayer::forward(const float* weights, const std::int64_t* inputs,
                             float* output) const {
  embed(context_, weights + word_offset_, position_offset_ ? weights + *position_offset_ : nullptr,
        inputs, output);
}

void EmbeddingLayer::backward(const std::int64_t* inputs, const float* output_gradient,
                              const Gradients& gradients) const {
  if (!gradients.accumulate) {
    std::fill_n(gradients.own, parameter_count_, 0.0F);
  }
  const std::int64_t hidden = context_.model.hidden;
  const at::Tensor order = at::empty({context_.tokens()}, at::kLong);
  const at::Tensor sum = at::empty({hidden}, at::kFloat);
  embed_backward(context_, inputs, output_gradient,
                 {order.data_ptr<std::int64_t>(), sum.data_ptr<float>()},
                 gradients.own + word_offset_);
  if (position_offset_) {
    const std::int64_t rows = context_.sequence_length;
    const at::Tensor dy = view_of(output_gradient, context_.micro_batch, rows * hidden);
    view_of(gradients.own + *position_offset_, rows * hidden).add_(at::sum(dy, 0));
  }
}

std::unique_ptr<HeadLayer> make_head(const LayerContext& context,
                                     const workloads::LayerClass& parameters) {
  return std::make_unique<NormedHead>(context, parameters);
}

RotaryTable make_rotary_table(std::int64_t sequence_length, std::int64_t head_dim, double theta) {
  const at::Tensor exponents = at::arange(0, head_dim, 2, at::kFloat).div_(head_dim);
  const at::Tensor frequencies = at::reciprocal(at::pow(theta, exponents));
  const at::Tensor angles =
      at::mul(at::arange(sequence_length, at::kFloat).unsqueeze(1), frequencies.unsqueeze(0));
  const at::Tensor cosine = at::cos(angles);
  const at::Tensor sine = at::sin(angles);
  RotaryTable table{.half = head_dim / 2, .cosine = {}, .sine = {}};
  table.cosine.assign(cosine.data_ptr<float>(), cosine.data_ptr<float>() + cosine.numel());
  table.sine.assign(sine.data_ptr<float>(), sine.data_ptr<float>() + sine.numel());
  return table;
}

}  // namespace offstage::exec
