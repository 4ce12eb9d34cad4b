#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "exec/blocks.h"
#include "platform/units.h"
#include "workloads/layer_table.h"

// A sub-model's forward and backward on flat arrays in the memory of a GPU (or of the CPU, which is
// how it is tested), with LibTorch's fused kernels and autograd. blocks.h is its twin for virtual
// GPUs: exact bits and bytes there, speed and bf16 here.
namespace offstage::exec {

// Weights and activations are of `precision`; gradients of weights are f32. Nothing here waits for
// a GPU: the calling thread's current stream is given the work.
// Thread: one object from several threads at a time.
class AutogradSubModel {
 public:
  // Layers first ... last - 1 of the table. gpu: where all arrays lie; none: on the CPU.
  // Errors: Error(bad_input) for an architecture the executor can't compute, naming it.
  AutogradSubModel(const workloads::LayerTable& table, std::size_t first, std::size_t last,
                   platform::Precision precision, std::optional<int> gpu);
  ~AutogradSubModel();

  bool has_embedding() const;
  bool has_head() const;

  struct DeviceWeights {
    const std::byte* own = nullptr;   // as Weights::own, of `precision`
    const std::byte* tied = nullptr;  // as Weights::tied
  };

  // Shape: input, output [tokens, hidden]; null with the embedding, the head.
  // tokens: in CPU memory, read before this returns.
  // Errors, of both: Error(out_of_memory), Error(device).
  void forward(const DeviceWeights& weights, const Tokens& tokens, const std::byte* input,
               std::byte* output) const;

  struct Pass {
    const std::byte* input = nullptr;            // null with the embedding
    const std::byte* output_gradient = nullptr;  // null with the head
    std::byte* input_gradient = nullptr;         // null with the embedding; may be `input`
    std::int64_t loss_tokens = 1;                // tokens of the global batch
    Gradients gradients;                         // in the GPU's memory
    // In memory that the GPU writes to; null without the head. The sum of the tokens' losses.
    float* loss = nullptr;
  };
  // Recomputes forward from the boundary input and goes back.
  void backward(const DeviceWeights& weights, const Tokens& tokens, const Pass& pass) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Rounds f32 gradients to bf16, to nearest and ties to even, and leaves these in the first half of
// the same memory, a few MB at a time. gpu: as above; its current stream is given the work.
void narrow_in_place(float* gradients, std::int64_t count, std::optional<int> gpu);

}  // namespace offstage::exec
