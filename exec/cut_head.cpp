#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <ATen/ops/amax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/sum.h>

#include "exec/elementwise.h"
#include "exec/tensor_ops.h"
#include "workloads/logits_chunk.h"

// The head of one rank of a tensor split: final norm, the logits of its words, and the loss, for
// which the ranks tell each other three numbers a token. The embedding is cut alike.
namespace offstage::exec {
namespace {

class CutHead final : public HeadLayer {
 public:
  CutHead(const LayerContext& context, const workloads::LayerClass& parameters)
      : context_(context),
        words_(words_here(context)),
        norm_(context.model, parameters,
              context.model.family == workloads::Family::gpt2 ? "ln_f" : "norm"),
        matrix_(find_slice(parameters, "lm_head.weight")) {}

  double loss(const Weights& weights, const float* input,
              const std::int64_t* targets) const override {
    const at::Tensor normed = norm_.forward(weights.own, hidden_view(input), nullptr);
    double sum = 0.0;
    for_chunks(normed, targets,
               [&](const Chunk& chunk) { sum += chunk_loss(weights, chunk).loss; });
    return sum;
  }

  double backward(const Weights& weights, const Pass& pass) const override {
    const at::Tensor x = hidden_view(pass.input);
    NormStatistics statistics;
    // Becomes its own gradient, chunk by chunk.
    at::Tensor normed = norm_.forward(weights.own, x, &statistics);
    double sum = 0.0;
    Gradients gradients = pass.gradients;
    for_chunks(normed, pass.targets, [&](const Chunk& chunk) {
      sum += chunk_backward(weights, chunk, pass.loss_tokens, gradients);
      gradients.accumulate = true;
    });
    sum_over_ranks(context_, normed);
    norm_.backward({.weights = weights.own,
                    .x = x,
                    .statistics = std::move(statistics),
                    .dy = std::move(normed),
                    .residual = {},
                    .out = hidden_view(pass.input_gradient),
                    .gradients = pass.gradients});
    return sum;
  }

 private:
  struct Chunk {
    at::Tensor normed;                      // [tokens of the chunk, hidden]
    const std::int64_t* targets = nullptr;  // of the chunk

    std::int64_t tokens() const { return normed.size(0); }
  };
  struct ChunkLoss {
    at::Tensor exponentials;  // [tokens, words of the rank], of logits less the token's largest
    at::Tensor numbers;       // [3, tokens]: largest logit; sum of exponentials; target's logit
    double loss = 0.0;        // of all tokens
  };

  at::Tensor hidden_view(const float* data) const {
    return view_of(data, context_.tokens(), context_.model.hidden);
  }
  // [words of the rank, hidden], with those that fill up the last rank's.
  at::Tensor matrix(const Weights& weights) const {
    const float* data = matrix_ ? weights.own + matrix_->offset : weights.tied;
    return view_of(data, context_.model.vocab, context_.model.hidden);
  }

  template <typename Work>
  void for_chunks(const at::Tensor& normed, const std::int64_t* targets, const Work& work) const {
    const std::int64_t rows = workloads::logits_chunk(context_.model.vocab, context_.tokens());
    for (std::int64_t first = 0; first < context_.tokens(); first += rows) {
      const std::int64_t count = std::min(rows, context_.tokens() - first);
      work(Chunk{normed.narrow(0, first, count), targets + first});
    }
  }

  // Token by token the loss is log(sum of exp(logit - largest)) - (target's logit - largest); the
  // rank that has the target's word gives its logit, the others 0.
  ChunkLoss chunk_loss(const Weights& weights, const Chunk& chunk) const {
    const std::int64_t tokens = chunk.tokens();
    at::Tensor logits = at::mm(chunk.normed, matrix(weights).t());
    at::Tensor numbers = at::empty({3, tokens}, at::kFloat);
    const std::int64_t words = words_.end - words_.first;
    if (words < context_.model.vocab) {  // words that fill up the last rank are never likely
      logits.narrow(1, words, context_.model.vocab - words)
          .fill_(-std::numeric_limits<float>::infinity());
    }
    at::Tensor largest = numbers.select(0, 0), sums = numbers.select(0, 1);
    at::amax_out(largest, logits, 1);
    context_.rank.largest(largest.data_ptr<float>(), tokens);
    logits.sub_(largest.unsqueeze(1));
    auto* const target = numbers.select(0, 2).data_ptr<float>();
    for (std::int64_t t = 0; t < tokens; ++t) {
      const bool here = words_.has(chunk.targets[t]);
      target[t] = here ? row(logits, t)[chunk.targets[t] - words_.first] : 0.0F;
    }
    logits.exp_();
    at::sum_out(sums, logits, 1);
    context_.rank.sum(sums.data_ptr<float>(), 2 * tokens);
    ChunkLoss result{std::move(logits), std::move(numbers), 0.0};
    const float* const sum = sums.data_ptr<float>();
    for (std::int64_t t = 0; t < tokens; ++t) {
      result.loss += std::log(sum[t]) - target[t];
    }
    return result;
  }

  // The chunk's loss; leaves this rank's part of the gradient of `normed` in its place.
  double chunk_backward(const Weights& weights, const Chunk& chunk, std::int64_t loss_tokens,
                        const Gradients& gradients) const {
    ChunkLoss forward = chunk_loss(weights, chunk);
    const float scale = 1.0F / static_cast<float>(loss_tokens);
    at::Tensor sums = forward.numbers.select(0, 1);
    sums.reciprocal_().mul_(scale);
    at::Tensor& dlogits = forward.exponentials;
    dlogits.mul_(sums.unsqueeze(1));
    for (std::int64_t t = 0; t < chunk.tokens(); ++t) {
      if (words_.has(chunk.targets[t])) {
        row(dlogits, t)[chunk.targets[t] - words_.first] -= scale;
      }
    }
    add_matrix_gradient(gradients, at::mm(dlogits.t(), chunk.normed));
    at::Tensor dnormed = chunk.normed;
    at::mm_out(dnormed, dlogits, matrix(weights));
    return forward.loss;
  }

  static float* row(const at::Tensor& logits, std::int64_t token) {
    return logits.data_ptr<float>() + token * logits.size(1);
  }
  void add_matrix_gradient(const Gradients& gradients, const at::Tensor& gradient) const {
    if (matrix_) {
      add_gradient(gradients, matrix_->offset, gradient);
    } else {
      add_gradient({.own = gradients.tied, .accumulate = gradients.accumulate}, 0, gradient);
    }
  }

  LayerContext context_;
  WordRange words_;
  NormLayer norm_;
  std::optional<Slice> matrix_;
};

}  // namespace

std::unique_ptr<HeadLayer> make_cut_head(const LayerContext& context,
                                         const workloads::LayerClass& parameters) {
  return std::make_unique<CutHead>(context, parameters);
}

}  // namespace offstage::exec
