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
#include "workloads/logits_chunk.h"

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
    const at::Tensor normed = norm_.forward(weights.own, x, nullptr);
    double sum = 0.0;
    for_chunks(normed, targets, [&](const Chunk& chunk) {
      const at::Tensor log_p = log_probabilities(weights, chunk.normed);
      sum += std::get<0>(summed_loss(log_p, chunk)).item<float>();
    });
    return sum;
  }

  double backward(const Weights& weights, const Pass& pass) const override {
    const at::Tensor x = view_of(pass.input, context_.tokens(), context_.model.hidden);
    NormStatistics statistics;
    // Becomes its own gradient, chunk by chunk.
    at::Tensor normed = norm_.forward(weights.own, x, &statistics);
    double sum = 0.0;
    Gradients gradients = pass.gradients;
    for_chunks(normed, pass.targets, [&](const Chunk& chunk) {
      sum += chunk_backward(weights, chunk, pass.loss_tokens, gradients);
      gradients.accumulate = true;
    });
    norm_.backward({.weights = weights.own,
                    .x = x,
                    .statistics = std::move(statistics),
                    .dy = std::move(normed),
                    .residual = {},
                    .out = view_of(pass.input_gradient, context_.tokens(), context_.model.hidden),
                    .gradients = pass.gradients});
    return sum;
  }

 private:
  struct Chunk {
    at::Tensor normed;                      // [tokens of the chunk, hidden]
    const std::int64_t* targets = nullptr;  // of the chunk

    std::int64_t tokens() const { return normed.size(0); }
  };

  template <typename Work>
  void for_chunks(const at::Tensor& normed, const std::int64_t* targets, const Work& work) const {
    const std::int64_t rows = workloads::logits_chunk(context_.model.vocab, context_.tokens());
    for (std::int64_t first = 0; first < context_.tokens(); first += rows) {
      const std::int64_t count = std::min(rows, context_.tokens() - first);
      work(Chunk{normed.narrow(0, first, count), targets + first});
    }
  }

  // The chunk's loss; leaves the gradient of `normed` in its place.
  double chunk_backward(const Weights& weights, const Chunk& chunk, std::int64_t loss_tokens,
                        const Gradients& gradients) const {
    at::Tensor log_p = log_probabilities(weights, chunk.normed);
    auto [loss, total_weight] = summed_loss(log_p, chunk);
    at::Tensor scale = at::full({}, 1.0, at::kFloat).div_(loss_tokens);
    at::Tensor dlogits = at::nll_loss_backward(scale, log_p, token_view(chunk), {},
                                               at::Reduction::Sum, kIgnoredToken, total_weight);
    at::_log_softmax_backward_data_out(dlogits, dlogits, log_p, 1, at::kFloat);
    log_p.reset();
    add_matrix_gradient(gradients, at::mm(dlogits.t(), chunk.normed));
    at::Tensor dnormed = chunk.normed;
    at::mm_out(dnormed, dlogits, matrix(weights));
    return loss.item<float>();
  }

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
  at::Tensor token_view(const Chunk& chunk) const {
    return at::from_blob(const_cast<std::int64_t*>(chunk.targets), {chunk.tokens()}, at::kLong);
  }
  std::tuple<at::Tensor, at::Tensor> summed_loss(const at::Tensor& log_p,
                                                 const Chunk& chunk) const {
    return at::nll_loss_forward(log_p, token_view(chunk), {}, at::Reduction::Sum, kIgnoredToken);
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
  context_.rank.sum(output, context_.tokens() * context_.model.hidden);
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
