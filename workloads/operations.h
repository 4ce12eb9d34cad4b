#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/layer_table.h"
#include "workloads/parameters.h"

// The operations of each kind of layer, forward and backward, as kernels in the order in which they
// run. layer_table.h is the way in for other folders.
//
// Note [What an operation costs]
// FLOPs: 2 m n k for a matrix product and machine.h's convention for attention; element-wise work
// counts none, it is paid for by its bytes. Backward of a product is two products of the same size.
// A sliding window is ignored: attention is counted over the whole sequence.
// Bytes: every operand read once and every result written once. Weight gradients are accumulated in
// f32: inside the product's epilogue in bf16 (read and write of 4 bytes), by an addition of its own
// in f32 (exec/blocks.h, Note [Same bits]). A bias is added in the product's epilogue; its gradient
// is a pass over the output's gradient.
// Kernels: in bf16 as fused GPU kernels, attention one forward and three backward (row sums, main
// pass, queries' gradient), norms one and two, everything else one each way. In f32 one for each
// operation that the CPU executor calls (exec/norm.cpp, gpt2_block.cpp, llama_block.cpp).
namespace offstage::workloads {

struct Passes {
  std::vector<Operation> forward;
  std::vector<Operation> backward;
};

// Precondition of the three: plannable(model).
Passes embedding_operations(const Model& model, const Batch& batch);
Passes block_operations(const Model& model, const Batch& batch, BlockKind kind);
// With the loss: softmax and cross entropy over f32 logits.
Passes head_operations(const Model& model, const Batch& batch);

// Bytes of an activation or weight as the device computes with it: bf16 2, f32 4.
std::int64_t element_size(platform::Precision precision);

}  // namespace offstage::workloads
