#include <utility>

#include "exec/tensor_ops.h"

// GPT-2's block: x1 = x + attention(norm(x)), y = x1 + feed_forward(norm(x1)), biases everywhere,
// q, k and v in one product.
namespace offstage::exec {
namespace {

struct Gpt2Kept final : Kept {
  NormStatistics norm1, norm2;
  at::Tensor attention_in;  // [tokens, hidden], norm(x)
  at::Tensor qkv;           // [tokens, 3 hidden]
  AttentionOutput attention;
  at::Tensor middle;      // [tokens, hidden], x1
  at::Tensor ffn_in;      // [tokens, hidden], norm(x1)
  at::Tensor ffn_hidden;  // [tokens, ffn], before the activation
};

class Gpt2Block final : public Layer {
 public:
  Gpt2Block(const LayerContext& context, const workloads::LayerClass& parameters)
      : context_(context),
        norm1_(context.model, parameters, "ln_1"),
        qkv_(parameters, "attn.c_attn", Linear::Stored::in_out),
        attention_out_(parameters, "attn.c_proj", Linear::Stored::in_out, context.rank.is_first()),
        norm2_(context.model, parameters, "ln_2"),
        ffn_up_(parameters, "mlp.c_fc", Linear::Stored::in_out),
        ffn_down_(parameters, "mlp.c_proj", Linear::Stored::in_out, context.rank.is_first()) {}

  void forward(const float* weights, const float* input, float* output) const override {
    const at::Tensor x = hidden_view(input);
    at::Tensor y = hidden_view(output);
    Gpt2Kept kept;
    kept.middle = y;
    attend(weights, x, false, kept);
    feed_forward_in(weights, false, kept);
    activate(context_.model.activation, kept.ffn_hidden);
    const at::Tensor ffn_out = ffn_down_.forward(weights, kept.ffn_hidden);
    sum_over_ranks(context_, ffn_out);
    y.add_(ffn_out);
  }

  std::unique_ptr<Kept> forward_keep(const float* weights, const float* input,
                                     float* output) const override {
    auto kept = std::make_unique<Gpt2Kept>();
    kept->middle = empty(context_.tokens(), context_.model.hidden);
    attend(weights, hidden_view(input), true, *kept);
    feed_forward_in(weights, true, *kept);
    if (output != nullptr) {
      at::Tensor y = hidden_view(output);
      ffn_down_.forward_into(weights, activated(context_.model.activation, kept->ffn_hidden), y);
      sum_over_ranks(context_, y);
      y.add_(kept->middle);
    }
    return kept;
  }

  void backward(const float* weights, const float* input, std::unique_ptr<Kept> kept,
                const float* output_gradient, float* input_gradient,
                const Gradients& gradients) const override {
    Gpt2Kept& k = static_cast<Gpt2Kept&>(*kept);
    at::Tensor dmiddle = feed_forward_backward(weights, k, hidden_view(output_gradient), gradients);
    at::Tensor dattention_in = attend_backward(weights, k, dmiddle, gradients);
    norm1_.backward({.weights = weights,
                     .x = hidden_view(input),
                     .statistics = std::move(k.norm1),
                     .dy = std::move(dattention_in),
                     .residual = dmiddle,
                     .out = hidden_view(input_gradient),
                     .gradients = gradients});
  }

 private:
  at::Tensor hidden_view(const float* data) const {
    return view_of(data, context_.tokens(), context_.model.hidden);
  }

  // Part 0, 1, 2 of qkv, as [batch, heads, sequence, head_dim].
  at::Tensor part(const at::Tensor& qkv, std::int64_t index) const {
    const std::int64_t d = context_.model.head_dim;
    const std::int64_t width = context_.model.heads * d;
    const std::int64_t s = context_.sequence_length;
    return qkv.as_strided({context_.micro_batch, context_.model.heads, s, d},
                          {s * 3 * width, d, 3 * width, 1}, index * width);
  }
  at::Tensor by_head(const at::Tensor& rows) const {
    return rows.view({context_.micro_batch, context_.sequence_length, -1, context_.model.head_dim})
        .transpose(1, 2);
  }
  at::Tensor by_token(const at::Tensor& heads) const {
    return heads.transpose(1, 2).reshape({context_.tokens(), -1});
  }

  // Up to kept.middle, which is memory to be filled. Without `keep` everything else is dropped as
  // soon as it can be.
  void attend(const float* weights, const at::Tensor& x, bool keep, Gpt2Kept& kept) const {
    kept.attention_in = norm1_.forward(weights, x, keep ? &kept.norm1 : nullptr);
    kept.qkv = qkv_.forward(weights, kept.attention_in);
    if (!keep) {
      kept.attention_in.reset();
    }
    kept.attention = attention(part(kept.qkv, 0), part(kept.qkv, 1), part(kept.qkv, 2));
    if (!keep) {
      kept.qkv.reset();
      kept.attention.logsumexp.reset();
    }
    attention_out_.forward_into(weights, by_token(kept.attention.out), kept.middle);
    if (!keep) {
      kept.attention.out.reset();
    }
    sum_over_ranks(context_, kept.middle);
    kept.middle.add_(x);
  }

  void feed_forward_in(const float* weights, bool keep, Gpt2Kept& kept) const {
    kept.ffn_in = norm2_.forward(weights, kept.middle, keep ? &kept.norm2 : nullptr);
    kept.ffn_hidden = ffn_up_.forward(weights, kept.ffn_in);
    if (!keep) {
      kept.ffn_in.reset();
    }
  }

  at::Tensor feed_forward_backward(const float* weights, Gpt2Kept& k, const at::Tensor& dy,
                                   const Gradients& gradients) const {
    // A second pass over ffn_hidden costs less than holding it twice.
    ffn_down_.weight_gradient(activated(context_.model.activation, k.ffn_hidden), dy, gradients);
    at::Tensor dhidden = ffn_down_.input_gradient(weights, dy);
    activate_backward(context_.model.activation, k.ffn_hidden, dhidden);
    k.ffn_hidden.reset();
    ffn_up_.weight_gradient(k.ffn_in, dhidden, gradients);
    k.ffn_in.reset();
    at::Tensor dffn_in = ffn_up_.input_gradient(weights, dhidden);
    dhidden.reset();
    sum_over_ranks(context_, dffn_in);
    at::Tensor dmiddle = norm2_.backward({.weights = weights,
                                          .x = k.middle,
                                          .statistics = std::move(k.norm2),
                                          .dy = std::move(dffn_in),
                                          .residual = dy,
                                          .out = {},
                                          .gradients = gradients});
    k.middle.reset();
    return dmiddle;
  }

  at::Tensor attend_backward(const float* weights, Gpt2Kept& k, const at::Tensor& dmiddle,
                             const Gradients& gradients) const {
    attention_out_.weight_gradient(by_token(k.attention.out), dmiddle, gradients);
    {
      AttentionGradient parts =
          attention_backward(by_head(attention_out_.input_gradient(weights, dmiddle)),
                             {part(k.qkv, 0), part(k.qkv, 1), part(k.qkv, 2)}, k.attention);
      k.attention = {};
      // q, k and v are no longer needed: their gradients take their place.
      part(k.qkv, 0).copy_(parts.q);
      part(k.qkv, 1).copy_(parts.k);
      part(k.qkv, 2).copy_(parts.v);
    }
    qkv_.weight_gradient(k.attention_in, k.qkv, gradients);
    k.attention_in.reset();
    at::Tensor dattention_in = qkv_.input_gradient(weights, k.qkv);
    k.qkv.reset();
    sum_over_ranks(context_, dattention_in);
    return dattention_in;
  }

  LayerContext context_;
  NormLayer norm1_;
  Linear qkv_;
  Linear attention_out_;
  NormLayer norm2_;
  Linear ffn_up_;
  Linear ffn_down_;
};

}  // namespace

std::unique_ptr<Layer> make_gpt2_block(const LayerContext& context,
                                       const workloads::LayerClass& parameters) {
  return std::make_unique<Gpt2Block>(context, parameters);
}

}  // namespace offstage::exec
