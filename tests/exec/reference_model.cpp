#include "tests/exec/reference_model.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <ATen/ATen.h>

namespace offstage::exec::testing {
namespace {

using at::Tensor;
using Parameters = std::map<std::string, Tensor>;  // of one layer, by name

Parameters make_parameters(const workloads::LayerClass& layer, const std::vector<float>& flat) {
  Parameters parameters;
  const float* data = flat.data();
  for (const workloads::ParameterTensor& tensor : layer.parameters) {
    parameters[tensor.name] =
        at::from_blob(const_cast<float*>(data), tensor.shape, at::kFloat).clone().requires_grad_();
    data += tensor.elements();
  }
  return parameters;
}

// The functions below read like the model's usual source in Python.

Tensor linear(const Parameters& p, const std::string& name, const Tensor& x) {
  const auto bias = p.find(name + ".bias");
  return bias == p.end() ? at::linear(x, p.at(name + ".weight"))
                         : at::linear(x, p.at(name + ".weight"), bias->second);
}

// GPT-2's own linear, whose weight is stored [in, out].
Tensor conv1d(const Parameters& p, const std::string& name, const Tensor& x) {
  const Tensor& weight = p.at(name + ".weight");
  const Tensor y = at::addmm(p.at(name + ".bias"), x.view({-1, x.size(-1)}), weight);
  return y.view({x.size(0), x.size(1), weight.size(1)});
}

Tensor norm(const workloads::Model& model, const Parameters& p, const std::string& name,
            const Tensor& x) {
  if (model.norm == workloads::Norm::rms_norm) {
    return at::rms_norm(x, {model.hidden}, p.at(name + ".weight"), model.norm_epsilon);
  }
  return at::layer_norm(x, {model.hidden}, p.at(name + ".weight"), p.at(name + ".bias"),
                        model.norm_epsilon);
}

Tensor heads(const Tensor& x, std::int64_t head_dim) {
  return x.view({x.size(0), x.size(1), -1, head_dim}).transpose(1, 2);
}

Tensor merged(const Tensor& x) {
  return x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)});
}

Tensor causal_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  return at::scaled_dot_product_attention(q, k, v, {}, 0.0, /*is_causal=*/true);
}

Tensor gpt2_block(const workloads::Model& model, const Parameters& p, Tensor x) {
  const auto qkv =
      conv1d(p, "attn.c_attn", norm(model, p, "ln_1", x)).split(model.hidden, /*dim=*/2);
  const Tensor a = causal_attention(heads(qkv[0], model.head_dim), heads(qkv[1], model.head_dim),
                                    heads(qkv[2], model.head_dim));
  x = x + conv1d(p, "attn.c_proj", merged(a));
  const Tensor h = conv1d(p, "mlp.c_fc", norm(model, p, "ln_2", x));
  return x + conv1d(p, "mlp.c_proj", at::gelu(h, "tanh"));
}

Tensor rotate_half(const Tensor& x) {
  const std::int64_t half = x.size(-1) / 2;
  return at::cat({-x.slice(-1, half), x.slice(-1, 0, half)}, -1);
}

Tensor repeated(const Tensor& x, std::int64_t times) {
  if (times == 1) {
    return x;
  }
  return x.unsqueeze(2)
      .expand({x.size(0), x.size(1), times, x.size(2), x.size(3)})
      .reshape({x.size(0), x.size(1) * times, x.size(2), x.size(3)});
}

Tensor llama_block(const workloads::Model& model, const Parameters& p, Tensor x) {
  const Tensor inverse_frequency =
      1.0 / at::pow(model.rope_theta, at::arange(0, model.head_dim, 2, at::kFloat) /
                                          static_cast<double>(model.head_dim));
  const Tensor frequencies = at::outer(at::arange(x.size(1), at::kFloat), inverse_frequency);
  const Tensor angles = at::cat({frequencies, frequencies}, -1);
  const Tensor c = angles.cos();
  const Tensor s = angles.sin();

  const Tensor h = norm(model, p, "input_layernorm", x);
  Tensor q = heads(linear(p, "self_attn.q_proj", h), model.head_dim);
  Tensor k = heads(linear(p, "self_attn.k_proj", h), model.head_dim);
  const Tensor v = heads(linear(p, "self_attn.v_proj", h), model.head_dim);
  q = q * c + rotate_half(q) * s;
  k = k * c + rotate_half(k) * s;
  const std::int64_t group = model.heads / model.kv_heads;
  const Tensor a = causal_attention(q, repeated(k, group), repeated(v, group));
  x = x + linear(p, "self_attn.o_proj", merged(a));
  const Tensor f = norm(model, p, "post_attention_layernorm", x);
  return x + linear(p, "mlp.down_proj",
                    at::silu(linear(p, "mlp.gate_proj", f)) * linear(p, "mlp.up_proj", f));
}

struct Whole {
  std::vector<Parameters> layers;
  Tensor output_matrix;
  std::vector<std::size_t> rounded;  // layers whose input is

  // Autograd rounds the gradient of a number that was converted in the same way.
  Tensor input_of(std::size_t layer, const Tensor& x) const {
    return std::ranges::find(rounded, layer) == rounded.end() ? x
                                                              : x.to(at::kBFloat16).to(at::kFloat);
  }
};

Tensor model_loss(const workloads::LayerTable& table, const Whole& whole, const MicroBatch& batch) {
  const std::vector<Parameters>& layers = whole.layers;
  const workloads::Model& model = table.model;
  const bool gpt2 = model.family == workloads::Family::gpt2;
  const auto tokens = [&](const std::vector<std::int64_t>& list) {
    return at::tensor(list).view({table.batch.micro_batch, table.batch.sequence_length});
  };
  Tensor x = at::embedding(layers.front().at(gpt2 ? "wte.weight" : "embed_tokens.weight"),
                           tokens(batch.inputs));
  if (gpt2) {
    x = x + at::embedding(layers.front().at("wpe.weight"), at::arange(table.batch.sequence_length));
  }
  for (std::size_t i = 1; i + 1 < layers.size(); ++i) {
    x = whole.input_of(i, x);
    x = gpt2 ? gpt2_block(model, layers[i], x) : llama_block(model, layers[i], x);
  }
  x = whole.input_of(layers.size() - 1, x);
  x = norm(model, layers.back(), gpt2 ? "ln_f" : "norm", x);
  const Tensor logits = at::linear(x, whole.output_matrix).view({-1, model.vocab});
  return at::cross_entropy_loss(logits, tokens(batch.targets).view(-1), {}, at::Reduction::Sum);
}

std::vector<float> flat_gradient(const Tensor& parameter) {
  const Tensor gradient = parameter.grad().contiguous();
  return {gradient.data_ptr<float>(), gradient.data_ptr<float>() + gradient.numel()};
}

}  // namespace

StepResult reference_step(const workloads::LayerTable& table, const LayerArrays& weights,
                          const std::vector<MicroBatch>& batches,
                          const std::vector<std::size_t>& rounded,
                          std::optional<std::int64_t> step_tokens) {
  Whole whole;
  whole.rounded = rounded;
  std::vector<Parameters>& layers = whole.layers;
  for (std::size_t i = 0; i < table.layers.size(); ++i) {
    layers.push_back(make_parameters(table.layer(i), weights[i]));
  }
  const Tensor& output_matrix = whole.output_matrix =
      table.model.tied_embeddings ? layers.front()
                                        .at(table.layer(0).parameters.front().name)
                                        .detach()
                                        .clone()
                                        .requires_grad_()
                                  : layers.back().at("lm_head.weight");
  const auto all_tokens =
      step_tokens.value_or(static_cast<std::int64_t>(batches.size() * batches[0].inputs.size()));
  StepResult result;
  for (const MicroBatch& batch : batches) {
    const Tensor loss = model_loss(table, whole, batch);
    (loss / static_cast<double>(all_tokens)).backward();
    result.loss += static_cast<double>(loss.item<float>());
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    std::vector<float> flat;
    for (const workloads::ParameterTensor& tensor : table.layer(i).parameters) {
      const std::vector<float> part = flat_gradient(layers[i].at(tensor.name));
      flat.insert(flat.end(), part.begin(), part.end());
    }
    result.gradients.push_back(std::move(flat));
  }
  if (table.model.tied_embeddings) {
    result.tied_gradient = flat_gradient(output_matrix);
  }
  return result;
}

}  // namespace offstage::exec::testing
