#include "exec/blocks.h"

#include <optional>
#include <utility>

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "exec/layer.h"
#include "exec/tensor_ops.h"
#include "platform/error.h"

namespace offstage::exec {
namespace {

struct Block {
  std::shared_ptr<const Layer> layer;  // shared by the blocks of one class: layers hold no state
  std::int64_t offset = 0;             // of its weights in the sub-model's
};

// LibTorch's exceptions become ours here, at the edge. Memory errors of an arena pass through.
template <typename Work>
auto without_autograd(const Work& work) {
  const c10::InferenceMode no_autograd;
  try {
    return work();
  } catch (const c10::Error& error) {
    throw Error(ErrorCode::device, fmt::format("LibTorch: {}", error.what_without_backtrace()));
  }
}

bool is_llama_style(const workloads::Model& model) {
  return model.norm == workloads::Norm::rms_norm && model.gated && !model.latent &&
         model.positions == workloads::Positions::rotary && model.rotary_dim == model.head_dim;
}

bool is_gpt2_style(const workloads::Model& model) {
  return model.family == workloads::Family::gpt2 && !model.gated && model.kv_heads == model.heads &&
         model.positions == workloads::Positions::learned;
}

// Planned like any other model, because neither changes a cost; computing them is another matter.
void require_plain_attention(const workloads::Model& model, std::int64_t sequence_length) {
  if (model.rope_scaled) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{} ({}) has stretched rotary frequencies (rope_scaling): it can be "
                            "planned and simulated, but training does not compute them",
                            model.architecture, model.name));
  }
  if (!model.plain_attention_scale) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{} ({}) scales attention in a way of its own (scale_attn_weights, "
                            "scale_attn_by_inverse_layer_idx): it can be planned and simulated, "
                            "but training does not compute it",
                            model.architecture, model.name));
  }
  if (model.sliding_window > 0 && model.sliding_window < sequence_length) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format(
            "{} ({}) attends to the last {} tokens (sliding_window), sequence_length is {}: "
            "training computes attention to all tokens; use sequences of at most {}",
            model.architecture, model.name, model.sliding_window, sequence_length,
            model.sliding_window));
  }
}

}  // namespace

void require_supported(const workloads::Model& model, std::int64_t sequence_length) {
  const bool family =
      model.family == workloads::Family::llama ? is_llama_style(model) : is_gpt2_style(model);
  if (!family || model.experts || model.head_bias || model.norms_per_block != 2 ||
      model.parallel_residual || model.embedding_norm || !model.final_norm || !model.causal ||
      model.activation == workloads::Activation::relu) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{} ({}) can be planned and simulated, but training computes only "
                            "GPT-2-style and Llama-style models (Llama, Mistral, Qwen2)",
                            model.architecture, model.name));
  }
  require_plain_attention(model, sequence_length);
}

// By block of the sub-model. inputs[i] is what block i reads; one more for the head, undefined
// without one. The first is a view of the boundary input, unless the embedding makes it.
struct KeptActivations::Parts {
  std::vector<at::Tensor> inputs;
  std::vector<std::unique_ptr<Kept>> blocks;
};

KeptActivations::KeptActivations(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
KeptActivations::~KeptActivations() = default;

struct SubModelCompute::Parts {
  LayerContext context;
  std::optional<EmbeddingLayer> embedding;
  std::vector<Block> blocks;
  std::unique_ptr<HeadLayer> head;
  std::int64_t head_offset = 0;
  bool tied_head = false;

  const float* tied(const Weights& weights) const { return embedding ? weights.own : weights.tied; }
  at::Tensor activation() const { return empty(context.tokens(), context.model.hidden); }
  double forward(const Weights& weights, const Tokens& tokens, const float* input,
                 float* output) const;
  KeptActivations::Parts keep(const Weights& weights, const Tokens& tokens, const float* input,
                              float* output) const;
  double backward(const Weights& weights, const Tokens& tokens, const Pass& pass,
                  KeptActivations::Parts kept) const;
};

SubModelCompute::SubModelCompute(const workloads::LayerTable& table, std::size_t first,
                                 std::size_t last)
    : SubModelCompute(table, first, last, TensorRank()) {}

SubModelCompute::SubModelCompute(const workloads::LayerTable& table, std::size_t first,
                                 std::size_t last, const TensorRank& rank)
    : parts_(std::make_unique<Parts>()) {
  require_supported(table.model, table.batch.sequence_length);
  OFFSTAGE_CHECK(first < last && last <= table.layers.size(),
                 fmt::format("layers {} to {} of {}", first, last, table.layers.size()));
  parts_->context = {table.model, table.batch.micro_batch, table.batch.sequence_length, rank};
  std::vector<std::shared_ptr<const Layer>> made(table.classes.size());
  without_autograd([&] {
    for (std::size_t index = first; index < last; ++index) {
      const workloads::LayerClass& parameters = table.layer(index);
      switch (parameters.kind) {
        case workloads::LayerKind::embedding:
          parts_->embedding.emplace(parts_->context, parameters);
          break;
        case workloads::LayerKind::block: {
          std::shared_ptr<const Layer>& layer = made[table.layers[index]];
          if (!layer) {
            layer = table.model.family == workloads::Family::gpt2
                        ? make_gpt2_block(parts_->context, parameters)
                        : make_llama_block(parts_->context, parameters);
          }
          parts_->blocks.push_back({layer, parameter_count_});
          break;
        }
        case workloads::LayerKind::head:
          parts_->head = rank.alone() ? make_head(parts_->context, parameters)
                                      : make_cut_head(parts_->context, parameters);
          parts_->head_offset = parameter_count_;
          parts_->tied_head = table.model.tied_embeddings;
          break;
      }
      parameter_count_ += parameters.parameter_count;
    }
  });
  has_embedding_ = parts_->embedding.has_value();
  has_head_ = parts_->head != nullptr;
}

SubModelCompute::~SubModelCompute() = default;

bool SubModelCompute::has_tied_head() const { return parts_->tied_head; }

double SubModelCompute::forward(const Weights& weights, const Tokens& tokens, const float* input,
                                float* output) const {
  return without_autograd([&] { return parts_->forward(weights, tokens, input, output); });
}

std::unique_ptr<KeptActivations> SubModelCompute::forward_keep(const Weights& weights,
                                                               const float* input,
                                                               float* output) const {
  OFFSTAGE_CHECK(!has_embedding_ && !has_head_, "only sub-models of blocks keep activations");
  auto parts = std::make_unique<KeptActivations::Parts>(
      without_autograd([&] { return parts_->keep(weights, {}, input, output); }));
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): make_unique can't call a private constructor
  return std::unique_ptr<KeptActivations>(new KeptActivations(std::move(parts)));
}

double SubModelCompute::backward(const Weights& weights, const Tokens& tokens, const Pass& pass,
                                 std::unique_ptr<KeptActivations> kept) const {
  return without_autograd([&] {
    return parts_->backward(
        weights, tokens, pass,
        kept ? std::move(*kept->parts_) : parts_->keep(weights, tokens, pass.input, nullptr));
  });
}

double SubModelCompute::Parts::forward(const Weights& weights, const Tokens& tokens,
                                       const float* input, float* output) const {
  at::Tensor current;  // owns what `input` points to, once that is ours
  const auto next_output = [&](bool last) {
    return last && !head ? view_of(output, context.tokens(), context.model.hidden) : activation();
  };
  if (embedding) {
    current = next_output(blocks.empty());
    embedding->forward(weights.own, tokens.inputs, current.data_ptr<float>());
    input = current.data_ptr<float>();
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    at::Tensor next = next_output(i + 1 == blocks.size());
    blocks[i].layer->forward(weights.own + blocks[i].offset, input, next.data_ptr<float>());
    current = std::move(next);
    input = current.data_ptr<float>();
  }
  return head ? head->loss({weights.own + head_offset, tied(weights)}, input, tokens.targets) : 0.0;
}

// The output of the last layer goes to `output`; null: nobody reads it.
KeptActivations::Parts SubModelCompute::Parts::keep(const Weights& weights, const Tokens& tokens,
                                                    const float* input, float* output) const {
  KeptActivations::Parts kept;
  std::vector<at::Tensor>& inputs = kept.inputs;
  if (!embedding) {
    inputs.push_back(view_of(input, context.tokens(), context.model.hidden));
  } else if (!blocks.empty() || head) {
    inputs.push_back(activation());
    embedding->forward(weights.own, tokens.inputs, inputs[0].data_ptr<float>());
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    // The last block's output is nobody's input without a head.
    const bool inside = head || i + 1 < blocks.size();
    inputs.push_back(inside ? activation() : at::Tensor());
    kept.blocks.push_back(
        blocks[i].layer->forward_keep(weights.own + blocks[i].offset, inputs[i].data_ptr<float>(),
                                      inside ? inputs[i + 1].data_ptr<float>() : output));
  }
  return kept;
}

double SubModelCompute::Parts::backward(const Weights& weights, const Tokens& tokens,
                                        const Pass& pass, KeptActivations::Parts kept) const {
  std::vector<at::Tensor>& inputs = kept.inputs;
  if (!embedding) {
    // Where the boundary input lies now: on the way forward it may have been elsewhere.
    inputs.front() = view_of(pass.input, context.tokens(), context.model.hidden);
  }
  const bool embedding_alone = embedding && blocks.empty() && !head;
  // One array carries the gradient back from layer to layer. It is never the one of the boundary
  // input, which the lowest layer still reads.
  OFFSTAGE_CHECK(!head || blocks.empty() || pass.input_gradient == nullptr ||
                     pass.input_gradient != pass.input,
                 "with blocks below a head, the input's gradient needs an array of its own");
  const at::Tensor gradient = embedding && !embedding_alone ? activation() : at::Tensor();
  float* const handed_down = head ? pass.input_gradient : pass.output_gradient;
  float* const carried = gradient.defined() ? gradient.data_ptr<float>() : handed_down;
  const float* output_gradient = pass.output_gradient;
  double loss = 0.0;
  if (head) {
    loss = head->backward({weights.own + head_offset, tied(weights)},
                          {.input = inputs.back().data_ptr<float>(),
                           .targets = tokens.targets,
                           .input_gradient = carried,
                           .loss_tokens = pass.loss_tokens,
                           .gradients = {pass.gradients.own + head_offset, pass.gradients.tied,
                                         pass.gradients.accumulate}});
    output_gradient = carried;
  }
  for (std::size_t i = blocks.size(); i-- > 0;) {
    inputs.pop_back();
    float* const below = i == 0 && !embedding ? pass.input_gradient : carried;
    blocks[i].layer->backward(
        weights.own + blocks[i].offset, inputs[i].data_ptr<float>(), std::move(kept.blocks[i]),
        output_gradient, below,
        {pass.gradients.own + blocks[i].offset, nullptr, pass.gradients.accumulate});
    output_gradient = carried;
  }
  if (embedding) {
    inputs.clear();
    embedding->backward(tokens.inputs, output_gradient,
                        {pass.gradients.own, nullptr, pass.gradients.accumulate});
  }
  return loss;
}

void set_compute_threads(int threads) { at::set_num_threads(threads); }

}  // namespace offstage::exec
