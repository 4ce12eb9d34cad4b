#include <utility>

#include <ATen/ops/mul.h>
#include <ATen/ops/sum.h>

#include "exec/elementwise.h"
#include "exec/tensor_ops.h"

// Llama's block: x1 = x + attention(norm(x)) with rotary positions and, where there are fewer key
// heads than query heads, each key head serving a group of them; y = x1 + down(silu(gate) * up).
namespace offstage::exec {
namespace {

struct LlamaKept final : Kept {
  NormStatistics norm1, norm2;
  at::Tensor attention_in;  // [tokens, hidden], norm(x)
  at::Tensor q;             // [tokens, heads x head_dim], turned
  at::Tensor k, v;          // [tokens, kv_heads x head_dim], k turned
  AttentionOutput attention;
  at::Tensor middle;    // [tokens, hidden], x1
  at::Tensor ffn_in;    // [tokens, hidden], norm(x1)
  at::Tensor gate, up;  // [tokens, ffn], before the activation
};

class LlamaBlock final : public Layer {
 public:
  LlamaBlock(const LayerContext& context, const workloads::LayerClass& parameters)
      : context_(context),
        rotary_(make_rotary_table(context.sequence_length, context.model.head_dim,
                                  context.model.rope_theta)),
        norm1_(context.model, parameters, "input_layernorm"),
        q_(parameters, "self_attn.q_proj", Linear::Stored::out_in),
        k_(parameters, "self_attn.k_proj", Linear::Stored::out_in),
        v_(parameters, "self_attn.v_proj", Linear::Stored::out_in),
        attention_out_(parameters, "self_attn.o_proj", Linear::Stored::out_in,
                       context.rank.is_first()),
        norm2_(context.model, parameters, "post_attention_layernorm"),
        gate_(parameters, "mlp.gate_proj", Linear::Stored::out_in),
        up_(parameters, "mlp.up_proj", Linear::Stored::out_in),
        down_(parameters, "mlp.down_proj", Linear::Stored::out_in, context.rank.is_first()) {}

  void forward(const float* weights, const float* input, float* output) const override {
    at::Tensor y = hidden_view(output);
    LlamaKept kept;
    kept.middle = y;
    attend(weights, hidden_view(input), false, kept);
    feed_forward_in(weights, false, kept);
    activate(context_.model.activation, kept.gate);
    kept.gate.mul_(kept.up);
    kept.up.reset();
    const at::Tensor ffn_out = down_.forward(weights, kept.gate);
    sum_over_ranks(context_, ffn_out);
    y.add_(ffn_out);
  }

  std::unique_ptr<Kept> forward_keep(const float* weights, const float* input,
                                     float* output) const override {
    auto kept = std::make_unique<LlamaKept>();
    kept->middle = empty(context_.tokens(), context_.model.hidden);
    attend(weights, hidden_view(input), true, *kept);
    feed_forward_in(weights, true, *kept);
    if (output != nullptr) {
      at::Tensor y = hidden_view(output);
      at::Tensor product = activated(context_.model.activation, kept->gate);
      down_.forward_into(weights, product.mul_(kept->up), y);
      sum_over_ranks(context_, y);
      y.add_(kept->middle);
    }
    return kept;
  }

  void backward(const float* weights, const float* input, std::unique_ptr<Kept> kept,
                const float* output_gradient, float* input_gradient,
                const Gradients& gradients) const override {
    LlamaKept& k = static_cast<LlamaKept&>(*kept);
    at::Tensor dmiddle = feed_forward_backward(weights, k, hidden_view(output_gradient), gradients);
    attention_out_.weight_gradient(by_token(k.attention.out), dmiddle, gradients);
    AttentionGradient parts = attend_backward(
        by_head(attention_out_.input_gradient(weights, dmiddle), context_.model.heads), k);
    at::Tensor dattention_in = projections_backward(weights, k, std::move(parts), gradients);
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
  at::Tensor by_head(const at::Tensor& rows, std::int64_t heads) const {
    return rows
        .view({context_.micro_batch, context_.sequence_length, heads, context_.model.head_dim})
        .transpose(1, 2);
  }
  at::Tensor by_token(const at::Tensor& heads) const {
    return heads.transpose(1, 2).reshape({context_.tokens(), -1});
  }
  std::int64_t group() const { return context_.model.heads / context_.model.kv_heads; }

  // Keys or values by head, each repeated for its group of query heads.
  at::Tensor repeated(const at::Tensor& rows) const {
    const workloads::Model& model = context_.model;
    at::Tensor heads = by_head(rows, model.kv_heads);
    if (group() == 1) {
      return heads;
    }
    return heads.unsqueeze(2)
        .expand({-1, -1, group(), -1, -1})
        .reshape({context_.micro_batch, model.heads, context_.sequence_length, model.head_dim});
  }
  // The gradient of rows from that of repeated(rows).
  at::Tensor gathered(const at::Tensor& heads) const {
    if (group() == 1) {
      return by_token(heads);
    }
    const workloads::Model& model = context_.model;
    at::Tensor rows = empty(context_.tokens(), model.kv_heads * model.head_dim);
    at::Tensor target = by_head(rows, model.kv_heads);
    at::sum_out(target,
                heads.view({context_.micro_batch, model.kv_heads, group(), context_.sequence_length,
                            model.head_dim}),
                2);
    return rows;
  }

  // Up to kept.middle, which is memory to be filled. Without `keep` everything else is dropped as
  // soon as it can be.
  void attend(const float* weights, const at::Tensor& x, bool keep, LlamaKept& kept) const {
    kept.attention_in = norm1_.forward(weights, x, keep ? &kept.norm1 : nullptr);
    kept.q = q_.forward(weights, kept.attention_in);
    kept.k = k_.forward(weights, kept.attention_in);
    kept.v = v_.forward(weights, kept.attention_in);
    if (!keep) {
      kept.attention_in.reset();
    }
    rotate(rotary_, Turn::forward, context_, context_.model.heads, kept.q.data_ptr<float>());
    rotate(rotary_, Turn::forward, context_, context_.model.kv_heads, kept.k.data_ptr<float>());
    kept.attention =
        attention(by_head(kept.q, context_.model.heads), repeated(kept.k), repeated(kept.v));
    if (!keep) {
      kept.q.reset();
      kept.k.reset();
      kept.v.reset();
      kept.attention.logsumexp.reset();
    }
    attention_out_.forward_into(weights, by_token(kept.attention.out), kept.middle);
    if (!keep) {
      kept.attention.out.reset();
    }
    sum_over_ranks(context_, kept.middle);
    kept.middle.add_(x);
  }

  void feed_forward_in(const float* weights, bool keep, LlamaKept& kept) const {
    kept.ffn_in = norm2_.forward(weights, kept.middle, keep ? &kept.norm2 : nullptr);
    kept.gate = gate_.forward(weights, kept.ffn_in);
    kept.up = up_.forward(weights, kept.ffn_in);
    if (!keep) {
      kept.ffn_in.reset();
    }
  }

  at::Tensor feed_forward_backward(const float* weights, LlamaKept& k, const at::Tensor& dy,
                                   const Gradients& gradients) const {
    at::Tensor active = activated(context_.model.activation, k.gate);
    down_.weight_gradient(at::mul(active, k.up), dy, gradients);
    at::Tensor dgate = down_.input_gradient(weights, dy);
    at::Tensor dup = active.mul_(dgate);
    active.reset();
    dgate.mul_(k.up);
    k.up.reset();
    activate_backward(context_.model.activation, k.gate, dgate);
    k.gate.reset();
    up_.weight_gradient(k.ffn_in, dup, gradients);
    gate_.weight_gradient(k.ffn_in, dgate, gradients);
    k.ffn_in.reset();
    at::Tensor dffn_in = up_.input_gradient(weights, dup);
    dup.reset();
    dffn_in.add_(gate_.input_gradient(weights, dgate));
    dgate.reset();
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

  // Gradients of q, k and v as rows, turned back.
  AttentionGradient attend_backward(const at::Tensor& dout, LlamaKept& k) const {
    AttentionGradient parts = attention_backward(
        dout, {by_head(k.q, context_.model.heads), repeated(k.k), repeated(k.v)}, k.attention);
    k.attention = {};
    k.q.reset();
    k.k.reset();
    k.v.reset();
    parts = {by_token(parts.q), gathered(parts.k), gathered(parts.v)};
    rotate(rotary_, Turn::backward, context_, context_.model.heads, parts.q.data_ptr<float>());
    rotate(rotary_, Turn::backward, context_, context_.model.kv_heads, parts.k.data_ptr<float>());
    context_.rank.sum_of_key_head(parts.k.data_ptr<float>(), parts.k.numel());
    context_.rank.sum_of_key_head(parts.v.data_ptr<float>(), parts.v.numel());
    return parts;
  }

  // Autograd reaches the three products in the order v, k, q and adds their gradients in it.
  at::Tensor projections_backward(const float* weights, LlamaKept& k, AttentionGradient parts,
                                  const Gradients& gradients) const {
    v_.weight_gradient(k.attention_in, parts.v, gradients);
    k_.weight_gradient(k.attention_in, parts.k, gradients);
    q_.weight_gradient(k.attention_in, parts.q, gradients);
    k.attention_in.reset();
    if (!context_.rank.is_first_key_sharer()) {
      // One of the ranks with this key head hands its gradient on to the stream.
      parts.k.zero_();
      parts.v.zero_();
    }
    at::Tensor dx = v_.input_gradient(weights, parts.v);
    parts.v.reset();
    dx.add_(k_.input_gradient(weights, parts.k));
    parts.k.reset();
    dx.add_(q_.input_gradient(weights, parts.q));
    parts.q.reset();
    sum_over_ranks(context_, dx);
    return dx;
  }

  LayerContext context_;
  RotaryTable rotary_;
  NormLayer norm1_;
  Linear q_, k_, v_;
  Linear attention_out_;
  NormLayer norm2_;
  Linear gate_, up_, down_;
};

}  // namespace

std::unique_ptr<Layer> make_llama_block(const LayerContext& context,
                                        const workloads::LayerClass& parameters) {
  return std::make_unique<LlamaBlock>(context, parameters);
}

}  // namespace offstage::exec
