#include "exec/autograd_sub_model.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include "exec/autograd_layers.h"
#include "platform/error.h"
#include "workloads/logits_chunk.h"

namespace offstage::exec {

using workloads::LayerClass;
using workloads::LayerKind;

namespace {

// LibTorch's exceptions become ours here, at the edge.
template <typename Work>
void at_the_edge(const Work& work) {
  try {
    work();
  } catch (const c10::OutOfMemoryError& error) {
    throw Error(ErrorCode::out_of_memory,
                fmt::format("LibTorch: {}", error.what_without_backtrace()));
  } catch (const c10::Error& error) {
    throw Error(ErrorCode::device, fmt::format("LibTorch: {}", error.what_without_backtrace()));
  }
}

// A layer of the sub-model: where its weights are, and what computes it.
struct PlacedLayer {
  const LayerClass* parameters = nullptr;
  std::int64_t offset = 0;                     // of its weights in the sub-model's
  std::shared_ptr<const AutogradBlock> block;  // shared by the blocks of one class; null: not one
};

at::Device device_of(std::optional<int> gpu) {
  return gpu ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(*gpu)) : at::Device(at::kCPU);
}

// Tensors that autograd takes for independent of where they come from.
WeightTensors as_leaves(WeightTensors tensors) {
  for (at::Tensor& tensor : tensors) {
    tensor = tensor.detach().requires_grad_();
  }
  return tensors;
}

}  // namespace

struct AutogradSubModel::Parts {
  workloads::LayerTable table;
  LayerContext context;
  at::TensorOptions options;  // of weights and activations
  std::optional<PlacedLayer> embedding, head;
  std::vector<PlacedLayer> blocks;

  at::Tensor view(const void* data, at::IntArrayRef shape, at::ScalarType type) const {
    // LibTorch has no tensor of const elements; callers write only to what they may write.
    return at::from_blob(const_cast<void*>(data), shape, options.dtype(type));
  }
  at::Tensor activation(const std::byte* data) const {
    return view(data, {context.tokens(), context.model.hidden}, element());
  }
  at::ScalarType element() const { return c10::typeMetaToScalarType(options.dtype()); }
  WeightTensors weights_of(const PlacedLayer& layer, const DeviceWeights& weights) const {
    const std::byte* const begin =
        weights.own + layer.offset * static_cast<std::int64_t>(c10::elementSize(element()));
    return weight_views(*layer.parameters,
                        view(begin, {layer.parameters->parameter_count}, element()));
  }
  // The gradients of one of a layer's tensors.
  at::Tensor gradient_of(const PlacedLayer& layer, std::size_t index,
                         const Gradients& gradients) const {
    std::int64_t offset = layer.offset;
    for (std::size_t i = 0; i < index; ++i) {
      offset += layer.parameters->parameters[i].elements();
    }
    return view(gradients.own + offset, layer.parameters->parameters[index].shape, at::kFloat);
  }

  at::Tensor token_tensor(const std::int64_t* ids) const;
  at::Tensor embed(const DeviceWeights& weights, const at::Tensor& ids) const;
  at::Tensor matrix(const DeviceWeights& weights) const;
  at::Tensor block_input(const DeviceWeights& weights, const Tokens& tokens,
                         const std::byte* input) const;
  at::Tensor head_backward(const DeviceWeights& weights, const Tokens& tokens, const Pass& pass,
                           const at::Tensor& x) const;
  void embedding_backward(const Tokens& tokens, const Pass& pass, const at::Tensor& dy) const;
  void backward(const DeviceWeights& weights, const Tokens& tokens, const Pass& pass) const;
};

namespace {

void add_or_put(const at::Tensor& gradient, bool accumulate, at::Tensor target) {
  if (accumulate) {
    target.add_(gradient);
  } else {
    target.copy_(gradient);
  }
}

}  // namespace

AutogradSubModel::AutogradSubModel(const workloads::LayerTable& table, std::size_t first,
                                   std::size_t last, platform::Precision precision,
                                   std::optional<int> gpu)
    : parts_(std::make_unique<Parts>()) {
  require_supported(table.model, table.batch.sequence_length);
  Parts& parts = *parts_;
  parts.table = table;
  parts.context = {table.model, table.batch.micro_batch, table.batch.sequence_length};
  parts.options =
      at::TensorOptions(precision == platform::Precision::bf16 ? at::kBFloat16 : at::kFloat)
          .device(device_of(gpu));
  std::vector<std::shared_ptr<const AutogradBlock>> made(table.classes.size());
  std::int64_t offset = 0;
  at_the_edge([&] {
    for (std::size_t index = first; index < last; ++index) {
      const LayerClass& parameters = parts.table.layer(index);
      PlacedLayer layer{&parameters, offset, nullptr};
      offset += parameters.parameter_count;
      if (parameters.kind == LayerKind::embedding) {
        parts.embedding = layer;
      } else if (parameters.kind == LayerKind::head) {
        parts.head = layer;
      } else {
        auto& block = made[table.layers[index]];
        if (!block && table.model.family == workloads::Family::gpt2) {
          block = make_autograd_gpt2_block(parts.context, parameters);
        } else if (!block) {
          block = make_autograd_llama_block(parts.context, parameters, parts.options);
        }
        layer.block = block;
        parts.blocks.push_back(layer);
      }
    }
  });
}

AutogradSubModel::~AutogradSubModel() = default;

bool AutogradSubModel::has_embedding() const { return parts_->embedding.has_value(); }
bool AutogradSubModel::has_head() const { return parts_->head.has_value(); }

// A copy on the device. From memory of LibTorch's own that the device can read by itself, and that
// LibTorch keeps until it has: the caller's may change as soon as this returns.
at::Tensor AutogradSubModel::Parts::token_tensor(const std::int64_t* ids) const {
  const at::Tensor given =
      at::from_blob(const_cast<std::int64_t*>(ids), {context.tokens()}, at::kLong);
  if (options.device().is_cpu()) {
    return given.clone();
  }
  at::Tensor staged =
      at::empty({context.tokens()}, at::TensorOptions(at::kLong).pinned_memory(true));
  staged.copy_(given);
  return staged.to(options.device(), /*non_blocking=*/true);
}

at::Tensor AutogradSubModel::Parts::embed(const DeviceWeights& weights,
                                          const at::Tensor& ids) const {
  const WeightTensors tensors = weights_of(*embedding, weights);
  const bool gpt2 = context.model.family == workloads::Family::gpt2;
  const LayerClass& parameters = *embedding->parameters;
  at::Tensor x = at::embedding(
      tensors[tensor_index(parameters, gpt2 ? "wte.weight" : "embed_tokens.weight")], ids);
  if (gpt2) {
    const at::Tensor& positions = tensors[tensor_index(parameters, "wpe.weight")];
    x.view({context.micro_batch, context.sequence_length, context.model.hidden})
        .add_(positions.narrow(0, 0, context.sequence_length));
  }
  return x;
}

// Of the head, [vocab, hidden].
at::Tensor AutogradSubModel::Parts::matrix(const DeviceWeights& weights) const {
  if (!context.model.tied_embeddings) {
    return weights_of(*head, weights)[tensor_index(*head->parameters, "lm_head.weight")];
  }
  const std::byte* const data = embedding ? weights.own : weights.tied;
  return view(data, {context.model.vocab, context.model.hidden}, element());
}

at::Tensor AutogradSubModel::Parts::block_input(const DeviceWeights& weights, const Tokens& tokens,
                                                const std::byte* input) const {
  return embedding ? embed(weights, token_tensor(tokens.inputs)) : activation(input);
}

void AutogradSubModel::forward(const DeviceWeights& weights, const Tokens& tokens,
                               const std::byte* input, std::byte* output) const {
  OFFSTAGE_CHECK(!has_head(), "the head's loss is computed in its backward");
  at_the_edge([&] {
    const c10::AutoGradMode no_autograd(false);
    at::Tensor x = parts_->block_input(weights, tokens, input);
    for (const PlacedLayer& layer : parts_->blocks) {
      x = layer.block->forward(parts_->weights_of(layer, weights), x);
    }
    parts_->activation(output).copy_(x);
  });
}

void AutogradSubModel::backward(const DeviceWeights& weights, const Tokens& tokens,
                                const Pass& pass) const {
  at_the_edge([&] { parts_->backward(weights, tokens, pass); });
}

// Layer by layer: each has a graph of its own, from its weights and its input as leaves, so that a
// layer's part of the memory is free again as soon as its gradients are added.
void AutogradSubModel::Parts::backward(const DeviceWeights& weights, const Tokens& tokens,
                                       const Pass& pass) const {
  struct Pending {
    WeightTensors leaves;
    at::Tensor input, output;
  };
  std::vector<Pending> pending;
  const c10::AutoGradMode no_autograd(false);
  at::Tensor x = block_input(weights, tokens, pass.input);
  for (const PlacedLayer& layer : blocks) {
    const c10::AutoGradMode autograd(true);
    Pending made{as_leaves(weights_of(layer, weights)), x.detach().requires_grad_(), {}};
    made.output = layer.block->forward(made.leaves, made.input);
    x = made.output.detach();
    pending.push_back(std::move(made));
  }
  at::Tensor dy = head ? head_backward(weights, tokens, pass, x) : activation(pass.output_gradient);
  x.reset();
  for (std::size_t i = blocks.size(); i-- > 0;) {
    Pending layer = std::move(pending[i]);
    torch::autograd::variable_list wanted = layer.leaves;
    wanted.push_back(layer.input);
    auto gradients = torch::autograd::grad({layer.output}, wanted, {dy});
    layer = {};
    dy = std::move(gradients.back());
    gradients.pop_back();
    for (std::size_t t = 0; t < gradients.size(); ++t) {
      add_or_put(gradients[t], pass.gradients.accumulate,
                 gradient_of(blocks[i], t, pass.gradients));
      gradients[t].reset();
    }
  }
  if (embedding) {
    embedding_backward(tokens, pass, dy);
  } else {
    activation(pass.input_gradient).copy_(dy);
  }
}

// Logits and loss in chunks of tokens, in f32 whatever the weights are. Returns the gradient of x.
at::Tensor AutogradSubModel::Parts::head_backward(const DeviceWeights& weights,
                                                  const Tokens& tokens, const Pass& pass,
                                                  const at::Tensor& x) const {
  const at::Tensor input = x.detach().requires_grad_();
  const WeightTensors leaves = as_leaves(weights_of(*head, weights));
  at::Tensor normed;
  {
    const c10::AutoGradMode autograd(true);
    normed = final_norm(context.model, *head->parameters, leaves, input);
  }
  const bool tied = context.model.tied_embeddings;
  const at::Tensor words = matrix(weights);
  const std::size_t norm_tensors = leaves.size() - (tied ? 0 : 1);
  at::Tensor dwords =
      tied ? view(pass.gradients.tied, words.sizes(), at::kFloat)
           : gradient_of(*head, tensor_index(*head->parameters, "lm_head.weight"), pass.gradients);
  const at::Tensor targets = token_tensor(tokens.targets).unsqueeze(1);
  const at::Tensor values = normed.detach();
  at::Tensor dnormed = at::empty(values.sizes(), options);
  at::Tensor loss = at::zeros({}, options.dtype(at::kFloat));
  const std::int64_t rows = workloads::logits_chunk(context.model.vocab, context.tokens());
  for (std::int64_t first = 0; first < context.tokens(); first += rows) {
    const std::int64_t count = std::min(rows, context.tokens() - first);
    const at::Tensor chunk = values.narrow(0, first, count);
    const at::Tensor target = targets.narrow(0, first, count);
    at::Tensor logits = at::mm(chunk, words.t()).to(at::kFloat);
    loss.add_(at::logsumexp(logits, 1, true).sub_(at::gather(logits, 1, target)).sum());
    logits = at::softmax(logits, 1);
    logits.scatter_add_(1, target, at::zeros({}, logits.options()).sub_(1).expand_as(target));
    const at::Tensor dlogits = logits.div_(static_cast<double>(pass.loss_tokens)).to(element());
    logits.reset();
    add_or_put(at::mm(dlogits.t(), chunk), pass.gradients.accumulate || first > 0, dwords);
    dnormed.narrow(0, first, count).copy_(at::mm(dlogits, words));
  }
  view(pass.loss, {}, at::kFloat).copy_(loss);
  torch::autograd::variable_list wanted(leaves.begin(),
                                        leaves.begin() + static_cast<std::ptrdiff_t>(norm_tensors));
  wanted.push_back(input);
  auto gradients = torch::autograd::grad({normed}, wanted, {dnormed});
  for (std::size_t t = 0; t < norm_tensors; ++t) {
    add_or_put(gradients[t], pass.gradients.accumulate, gradient_of(*head, t, pass.gradients));
  }
  return gradients.back();
}

// Straight into the f32 gradients: a dense temporary would be as large as they are. index_put_
// with accumulate adds in a fixed order on GPUs too.
void AutogradSubModel::Parts::embedding_backward(const Tokens& tokens, const Pass& pass,
                                                 const at::Tensor& dy) const {
  const LayerClass& parameters = *embedding->parameters;
  const bool gpt2 = context.model.family == workloads::Family::gpt2;
  if (!pass.gradients.accumulate) {
    view(pass.gradients.own + embedding->offset, {parameters.parameter_count}, at::kFloat).zero_();
  }
  const at::Tensor rows = dy.to(at::kFloat);
  at::Tensor words =
      gradient_of(*embedding, tensor_index(parameters, gpt2 ? "wte.weight" : "embed_tokens.weight"),
                  pass.gradients);
  words.index_put_({token_tensor(tokens.inputs)}, rows, /*accumulate=*/true);
  if (gpt2) {
    gradient_of(*embedding, tensor_index(parameters, "wpe.weight"), pass.gradients)
        .narrow(0, 0, context.sequence_length)
        .add_(rows.view({context.micro_batch, context.sequence_length, -1}).sum(0));
  }
}

void narrow_in_place(float* gradients, std::int64_t count, std::optional<int> gpu) {
  // A block's halves land on blocks that are already rounded, or on its own, which is a copy then.
  constexpr std::int64_t kBlock = 1 << 20;
  at_the_edge([&] {
    const c10::AutoGradMode no_autograd(false);
    const at::TensorOptions options = at::TensorOptions(at::kFloat).device(device_of(gpu));
    const at::Tensor wide = at::from_blob(gradients, {count}, options);
    at::Tensor narrow = at::from_blob(gradients, {count}, options.dtype(at::kBFloat16));
    for (std::int64_t begin = 0; begin < count; begin += kBlock) {
      const std::int64_t size = std::min(kBlock, count - begin);
      narrow.narrow(0, begin, size).copy_(wide.narrow(0, begin, size).to(at::kBFloat16));
    }
  });
}

}  // namespace offstage::exec
