#pragma once

#include <cstdint>

#include "workloads/layer_table.h"
#include "workloads/model.h"

// What one GPU of a tensor split holds and computes: Megatron's layout (Shoeybi et al., arXiv
// 1909.08053). The first matrices of attention and feed-forward are cut by columns, the second ones
// by rows, embedding and head by words; norms, row-parallel biases and learned positions are on
// every rank. The ranks add up what they send on with all-reduces.
namespace offstage::workloads {

// The model as a rank sees it: heads, feed-forward and vocabulary divided by `ways`, the stream as
// wide as before. The vocabulary is padded up to a multiple, as is usual; a key-value head that
// several ranks' queries read stands on each of them. A layer table of it is a rank's table.
// Errors: Error(bad_input) that names the size `ways` does not divide.
Model tensor_slice(const Model& model, std::int64_t ways);

// Whether tensor_slice has an answer.
bool sliceable(const Model& model, std::int64_t ways);

// All-reduces of one pass through a layer: of the stream [tokens, hidden], and of one f32 number a
// token (the softmax over a cut vocabulary: largest logit, sum, the target's logit).
struct TensorReductions {
  int forward = 0;   // again when recomputing, but for the one that yields the layer's output
  int backward = 0;  // of the gradient of the stream
  int token_sums = 0;
};
TensorReductions tensor_reductions(const Model& model, LayerKind kind);

}  // namespace offstage::workloads
