#include "exec/autograd_layers.h"

#include <optional>
#include <string>
#include <utility>

#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::exec {
namespace {

std::optional<std::size_t> find_index(const workloads::LayerClass& parameters,
                                      const std::string& name) {
  for (std::size_t i = 0; i < parameters.parameters.size(); ++i) {
    if (parameters.parameters[i].name == name) {
      return i;
    }
  }
  return std::nullopt;
}

// A norm or a linear map: a tensor `name.weight`, and `name.bias` where the layer has one.
struct Named {
  Named(const workloads::LayerClass& parameters, const std::string& name)
      : weight(tensor_index(parameters, name + ".weight")),
        bias(find_index(parameters, name + ".bias")) {}
  std::optional<at::Tensor> bias_of(const WeightTensors& weights) const {
    return bias ? std::optional(weights[*bias]) : std::nullopt;
  }
  std::size_t weight;
  std::optional<std::size_t> bias;
};

at::Tensor norm(const workloads::Model& model, const Named& named, const WeightTensors& weights,
                const at::Tensor& x) {
  const at::Tensor& weight = weights[named.weight];
  return model.norm == workloads::Norm::rms_norm
             ? at::rms_norm(x, {model.hidden}, weight, model.norm_epsilon)
             : at::layer_norm(x, {model.hidden}, weight, named.bias_of(weights),
                              model.norm_epsilon);
}

// Weights stored [in, out], as GPT-2's checkpoints do.
at::Tensor in_out(const Named& named, const WeightTensors& weights, const at::Tensor& x) {
  return at::addmm(weights[*named.bias], x, weights[named.weight]);
}

// Weights stored [out, in].
at::Tensor out_in(const Named& named, const WeightTensors& weights, const at::Tensor& x) {
  return at::linear(x, weights[named.weight], named.bias_of(weights));
}

at::Tensor activated(workloads::Activation activation, const at::Tensor& x) {
  switch (activation) {
    case workloads::Activation::gelu:
      return at::gelu(x, "none");
    case workloads::Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case workloads::Activation::silu:
      return at::silu(x);
    case workloads::Activation::relu:
      break;
  }
  OFFSTAGE_CHECK(false, "require_supported lets no other activation through");
}

// [tokens, heads x head_dim] to [batch, heads, sequence, head_dim] and back.
at::Tensor by_head(const LayerContext& context, const at::Tensor& rows, std::int64_t heads) {
  return rows.view({context.micro_batch, context.sequence_length, heads, context.model.head_dim})
      .transpose(1, 2);
}
at::Tensor by_token(const LayerContext& context, const at::Tensor& heads) {
  return heads.transpose(1, 2).reshape({context.tokens(), -1});
}

at::Tensor causal_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const bool grouped = q.size(1) != k.size(1);
  return at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/true, {}, grouped);
}

class Gpt2Block final : public AutogradBlock {
 public:
  Gpt2Block(const LayerContext& context, const workloads::LayerClass& parameters)
      : context_(context),
        norm1_(parameters, "ln_1"),
        qkv_(parameters, "attn.c_attn"),
        attention_out_(parameters, "attn.c_proj"),
        norm2_(parameters, "ln_2"),
        up_(parameters, "mlp.c_fc"),
        down_(parameters, "mlp.c_proj") {}

  at::Tensor forward(const WeightTensors& weights, const at::Tensor& x) const override {
    const workloads::Model& model = context_.model;
    const at::Tensor qkv = in_out(qkv_, weights, norm(model, norm1_, weights, x));
    const auto parts = qkv.chunk(3, 1);
    const auto heads = [&](std::size_t i) { return by_head(context_, parts[i], model.heads); };
    const at::Tensor attended = by_token(context_, causal_attention(heads(0), heads(1), heads(2)));
    const at::Tensor middle = at::add(x, in_out(attention_out_, weights, attended));
    const at::Tensor hidden = in_out(up_, weights, norm(model, norm2_, weights, middle));
    return at::add(middle, in_out(down_, weights, activated(model.activation, hidden)));
  }

 private:
  LayerContext context_;
  Named norm1_, qkv_, attention_out_, norm2_, up_, down_;
};

class LlamaBlock final : public AutogradBlock {
 public:
  LlamaBlock(const LayerContext& context, const workloads::LayerClass& parameters,
             const at::TensorOptions& options)
      : context_(context),
        norm1_(parameters, "input_layernorm"),
        q_(parameters, "self_attn.q_proj"),
        k_(parameters, "self_attn.k_proj"),
        v_(parameters, "self_attn.v_proj"),
        attention_out_(parameters, "self_attn.o_proj"),
        norm2_(parameters, "post_attention_layernorm"),
        gate_(parameters, "mlp.gate_proj"),
        up_(parameters, "mlp.up_proj"),
        down_(parameters, "mlp.down_proj") {
    // Computed on the CPU in f32, as elementwise.h does, whatever they are stored as.
    const at::Tensor exponents =
        at::arange(0, context.model.head_dim, 2, at::kFloat).div_(context.model.head_dim);
    const at::Tensor frequencies = at::reciprocal(at::pow(context.model.rope_theta, exponents));
    const at::Tensor half = at::outer(at::arange(context.sequence_length, at::kFloat), frequencies);
    const at::Tensor angles = at::cat({half, half}, 1);
    cosine_ = angles.cos().to(options);
    sine_ = angles.sin().to(options);
  }

  at::Tensor forward(const WeightTensors& weights, const at::Tensor& x) const override {
    const workloads::Model& model = context_.model;
    const at::Tensor in = norm(model, norm1_, weights, x);
    const at::Tensor q = turned(by_head(context_, out_in(q_, weights, in), model.heads));
    const at::Tensor k = turned(by_head(context_, out_in(k_, weights, in), model.kv_heads));
    const at::Tensor v = by_head(context_, out_in(v_, weights, in), model.kv_heads);
    const at::Tensor attended = by_token(context_, causal_attention(q, k, v));
    const at::Tensor middle = at::add(x, out_in(attention_out_, weights, attended));
    const at::Tensor ffn_in = norm(model, norm2_, weights, middle);
    const at::Tensor gate = activated(model.activation, out_in(gate_, weights, ffn_in));
    return at::add(middle, out_in(down_, weights, at::mul(gate, out_in(up_, weights, ffn_in))));
  }

 private:
  // Every head by its position: the first half of its elements against the second.
  at::Tensor turned(const at::Tensor& heads) const {
    const auto halves = heads.chunk(2, -1);
    const at::Tensor crossed = at::cat({halves[1].neg(), halves[0]}, -1);
    return at::add(at::mul(heads, cosine_), at::mul(crossed, sine_));
  }

  LayerContext context_;
  Named norm1_, q_, k_, v_, attention_out_, norm2_, gate_, up_, down_;
  at::Tensor cosine_, sine_;  // [sequence, head_dim]
};

}  // namespace

std::size_t tensor_index(const workloads::LayerClass& parameters, const std::string& name) {
  const auto found = find_index(parameters, name);
  OFFSTAGE_CHECK(found.has_value(),
                 fmt::format("layer '{}' has no tensor '{}'", parameters.name, name));
  return *found;
}

WeightTensors weight_views(const workloads::LayerClass& parameters, const at::Tensor& flat) {
  WeightTensors views;
  std::int64_t offset = 0;
  for (const workloads::ParameterTensor& tensor : parameters.parameters) {
    views.push_back(flat.narrow(0, offset, tensor.elements()).view(tensor.shape));
    offset += tensor.elements();
  }
  return views;
}

at::Tensor final_norm(const workloads::Model& model, const workloads::LayerClass& parameters,
                      const WeightTensors& weights, const at::Tensor& x) {
  const bool gpt2 = model.family == workloads::Family::gpt2;
  return norm(model, Named(parameters, gpt2 ? "ln_f" : "norm"), weights, x);
}

std::unique_ptr<AutogradBlock> make_autograd_gpt2_block(const LayerContext& context,
                                                        const workloads::LayerClass& parameters) {
  return std::make_unique<Gpt2Block>(context, parameters);
}

std::unique_ptr<AutogradBlock> make_autograd_llama_block(const LayerContext& context,
                                                         const workloads::LayerClass& parameters,
                                                         const at::TensorOptions& options) {
  return std::make_unique<LlamaBlock>(context, parameters, options);
}

}  // namespace offstage::exec
