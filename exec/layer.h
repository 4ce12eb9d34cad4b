#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "exec/blocks.h"
#include "exec/tensor_rank.h"
#include "workloads/layer_table.h"

// The kinds of layers SubModelCompute strings together, one class each. They know one layer's flat
// weights and nothing about sub-models, slots or tasks.
namespace offstage::exec {

// What a layer holds from its forward to its backward.
class Kept {
 public:
  virtual ~Kept() = default;
};

// One layer between embedding and head. Stateless: any number of threads may use one object.
class Layer {
 public:
  virtual ~Layer() = default;

  // output = layer(input), keeping nothing. output and input don't overlap.
  virtual void forward(const float* weights, const float* input, float* output) const = 0;
  // The same, keeping what backward needs (input stays the caller's to keep). output may be null
  // when nobody reads it; what only it needs is then not computed.
  virtual std::unique_ptr<Kept> forward_keep(const float* weights, const float* input,
                                             float* output) const = 0;
  // From the gradient of the output to that of the input; uses up `kept`. The latter is written
  // last: it may be the array of the former, or `input`.
  virtual void backward(const float* weights, const float* input, std::unique_ptr<Kept> kept,
                        const float* output_gradient, float* input_gradient,
                        const Gradients& gradients) const = 0;
};

// What the arithmetic needs to know of model and micro-batch.
struct LayerContext {
  workloads::Model model;  // in a tensor split the rank's slice
  std::int64_t micro_batch = 0;
  std::int64_t sequence_length = 0;
  TensorRank rank = {};

  std::int64_t tokens() const { return micro_batch * sequence_length; }
};

// Token vectors, plus position vectors where they are learned.
class EmbeddingLayer {
 public:
  EmbeddingLayer(const LayerContext& context, const workloads::LayerClass& parameters);
  void forward(const float* weights, const std::int64_t* inputs, float* output) const;
  void backward(const std::int64_t* inputs, const float* output_gradient,
                const Gradients& gradients) const;

 private:
  LayerContext context_;
  std::int64_t word_offset_ = 0;
  std::optional<std::int64_t> position_offset_;
  std::int64_t parameter_count_ = 0;
};

// Final norm, logits, and the loss. Its backward includes its forward.
class HeadLayer {
 public:
  virtual ~HeadLayer() = default;
  // The sum of the tokens' losses. `weights.tied` is the matrix of a tied head.
  virtual double loss(const Weights& weights, const float* input,
                      const std::int64_t* targets) const = 0;
  struct Pass {
    const float* input = nullptr;
    const std::int64_t* targets = nullptr;
    float* input_gradient = nullptr;
    std::int64_t loss_tokens = 1;
    Gradients gradients;
  };
  virtual double backward(const Weights& weights, const Pass& pass) const = 0;
};

std::unique_ptr<HeadLayer> make_head(const LayerContext& context,
                                     const workloads::LayerClass& parameters);
// The same over a vocabulary that is cut among the ranks of a tensor split.
std::unique_ptr<HeadLayer> make_cut_head(const LayerContext& context,
                                         const workloads::LayerClass& parameters);
std::unique_ptr<Layer> make_gpt2_block(const LayerContext& context,
                                       const workloads::LayerClass& parameters);
std::unique_ptr<Layer> make_llama_block(const LayerContext& context,
                                        const workloads::LayerClass& parameters);

// Errors: Error(bad_input) naming the architecture and what this executor computes.
void require_supported(const workloads::Model& model, std::int64_t sequence_length);

}  // namespace offstage::exec
