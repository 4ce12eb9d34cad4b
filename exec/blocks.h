#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "workloads/layer_table.h"

// The layers of a model and their arithmetic: GPT-2-style and Llama-style, f32, on the CPU. Forward
// and backward are written out with the kernels that LibTorch's autograd would call, in its order,
// so that a model cut into sub-models trains bit for bit like one that is not (Note [Same bits]).
//
// Everything crosses this header as flat f32 arrays. Activations: [tokens, hidden], token major,
// tokens = micro_batch x sequence_length. A layer's weights, and its gradients: its
// ParameterTensors one behind the other, in the table's order, without gaps. Temporaries are
// tensors charged to the calling thread's arena (arena.h); `workloads/working_set.h` lists them.
namespace offstage::exec {

class TensorRank;

// Note [Same bits]
// The reference is tests/exec/reference_model.h: the model built from torch's own functions
// (linear, layer_norm, scaled_dot_product_attention ...), f32, the same number of threads,
// micro-batch after micro-batch, the loss a micro-batch's sum divided by all tokens of the global
// batch. A weight's gradient of a micro-batch is a temporary of its own that is then added: kernels
// that add into their output round differently. With tied embeddings the head's part and the
// embedding's are summed over micro-batches in buffers of their own; whoever owns them adds the
// head's to the embedding's.

// Note [Replicated bits]
// In a tensor split every rank holds the whole stream between layers, and norms, row-parallel
// biases and learned positions. They keep the same bits on all ranks: each rank computes them, and
// their gradients, from arrays that are alike, and what comes from the slices is brought together
// by sums that give all ranks the same bits (rank_group.h). A sum over the ranks of partial
// products rounds otherwise than one product, so that a tensor split equals the batch split within
// a tolerance only (tests/exec/tensor_training_test.cpp).

// One micro-batch's tokens. inputs: read by the embedding; targets: by the head. [tokens] each.
struct Tokens {
  const std::int64_t* inputs = nullptr;
  const std::int64_t* targets = nullptr;
};

struct Weights {
  const float* own = nullptr;  // the layer's, or layer after layer for a sub-model
  // The embedding's matrix [vocab, hidden], for a tied head that is not in one sub-model with it.
  const float* tied = nullptr;
};

// Where backward leaves gradients of weights.
struct Gradients {
  float* own = nullptr;     // laid out like Weights::own
  float* tied = nullptr;    // [vocab, hidden]: a tied head's part, never the embedding's
  bool accumulate = false;  // add to what is there; false for the first micro-batch: overwrite
};

// What a sub-model's forward pass leaves for its backward pass of the same micro-batch: tensors of
// the arena that paid for forward.
class KeptActivations {
 public:
  ~KeptActivations();

 private:
  friend class SubModelCompute;
  struct Parts;
  explicit KeptActivations(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// Consecutive layers of a model that are on the device at one time (a scheduler::SubModel), as the
// compute tasks see them.
//
//   const SubModelCompute part(table, 3, 5);
//   part.forward({weights}, tokens, input, output);
//   part.backward({weights}, tokens, pass);           // recomputes forward, then goes back
class SubModelCompute {
 public:
  // Layers first ... last - 1 of the table (layer 0 is the embedding, the last one the head). In a
  // tensor split table, weights and gradients are those of the rank's slice, while activations and
  // their gradients are whole: forward and backward must then run on all ranks at once (Note
  // [Replicated bits]).
  // Errors: Error(bad_input) for an architecture this executor can't compute, naming it.
  SubModelCompute(const workloads::LayerTable& table, std::size_t first, std::size_t last,
                  const TensorRank& rank);
  SubModelCompute(const workloads::LayerTable& table, std::size_t first, std::size_t last);
  ~SubModelCompute();

  bool has_embedding() const { return has_embedding_; }
  bool has_head() const { return has_head_; }
  // A head that reads the embedding's matrix: Gradients::tied is needed, and Weights::tied unless
  // the embedding is in here too.
  bool has_tied_head() const;
  // Of Weights::own and Gradients::own, in floats.
  std::int64_t parameter_count() const { return parameter_count_; }

  // input: null with the embedding; output: null with the head. Returns the sum of the tokens'
  // losses (natural logarithm) with the head, 0 without.
  double forward(const Weights& weights, const Tokens& tokens, const float* input,
                 float* output) const;
  // The same bits in `output`, and what backward needs is kept. Precondition: blocks only.
  std::unique_ptr<KeptActivations> forward_keep(const Weights& weights, const float* input,
                                                float* output) const;

  struct Pass {
    const float* input = nullptr;      // null with the embedding
    float* output_gradient = nullptr;  // null with the head; carries the gradients between layers
    // Null with the embedding. May be output_gradient, or input, which is then overwritten at the
    // very end (not when a head has blocks below it).
    float* input_gradient = nullptr;
    std::int64_t loss_tokens = 1;  // tokens of the global batch: the loss is divided by it
    Gradients gradients;
  };
  // Recomputes forward from the boundary input, keeping, and runs backward; with what forward_keep
  // kept for an input of these numbers, which is used up, only the latter. Returns as forward does.
  double backward(const Weights& weights, const Tokens& tokens, const Pass& pass,
                  std::unique_ptr<KeptActivations> kept = nullptr) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
  bool has_embedding_ = false;
  bool has_head_ = false;
  std::int64_t parameter_count_ = 0;
};

// Threads LibTorch may use in the calling thread's operations. Working sets are exact for 1.
void set_compute_threads(int threads);

}  // namespace offstage::exec
