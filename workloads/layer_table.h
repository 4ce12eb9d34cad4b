#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "platform/machine.h"
#include "platform/units.h"
#include "workloads/model.h"

// What one layer of a model holds and costs, byte-exact and operation by operation. The cost model
// turns operations into time; the plan's memory ledger adds up the bytes.
//
//   const LayerTable table = make_layer_table(model, {.micro_batch = 2, .sequence_length = 2048,
//                                                     .precision = Precision::bf16});
//   table.parameters()   // every tensor once, tied ones counted once
namespace offstage::workloads {

// fused: one kernel that never stores scores. unfused: products, softmax and dropout as kernels of
// their own, which read and write sequence x sequence scores of every head.
enum class AttentionKernel { fused, unfused };

// Which kernels the software runs, where the model leaves a choice. By default those of offstage's
// executor.
struct Kernels {
  AttentionKernel attention = AttentionKernel::fused;
  bool autograd = false;  // results that backward needs are kept, none is computed again
  bool dropout = false;   // with the masks it keeps; of scores only where they are stored
  // Moved by the loss in device memory, forward and backward; 0: by a fused kernel each way.
  std::int64_t loss_bytes_per_logit = 0;
  // The most that the loss holds at once; 0: the software's is not known.
  std::int64_t loss_memory_bytes_per_logit = 0;
  bool operator==(const Kernels&) const = default;
};

struct Batch {
  std::int64_t micro_batch = 1;      // sequences in one forward
  std::int64_t sequence_length = 0;  // tokens of one sequence
  platform::Precision precision = platform::Precision::bf16;
  Kernels kernels = {};
};

struct ParameterTensor {
  std::string name;  // as in Hugging Face checkpoints, without the layer's prefix
  std::vector<std::int64_t> shape;
  std::int64_t elements() const;
};

enum class OperationKind { gemm, attention, memory };

// One operation of a pass. gemm: C[m,n] = A[m,k] B[k,n], `count` times. attention: micro_batch x
// heads heads over sequence_length. memory: an element-wise, norm, embedding or softmax pass that
// moves `bytes` and does little else.
struct Operation {
  std::string name;
  OperationKind kind = OperationKind::memory;
  std::int64_t m = 0, n = 0, k = 0, count = 1;
  bool batched = false;                            // gemm: all `count` in one kernel
  std::int64_t head_dim = 0, sequence_length = 0;  // attention only
  bool causal = false;
  platform::Flops flops;        // of all `count` together
  platform::Bytes bytes;        // touched in device memory, of all together
  int kernels = 1;              // launched
  bool transcendental = false;  // memory: evaluates tanh or exp for every element
};

enum class LayerKind { embedding, block, head };

// Memory of one layer on the device beside its weights and gradients, for the executor's block
// code: its allocations in order (working_set.h has the script these come from).
struct LayerMemory {
  platform::Bytes output;         // the boundary activation it hands on
  platform::Bytes kept;           // held from its forward until its backward is done
  platform::Bytes forward_peak;   // while running forward and keeping nothing, output included
  platform::Bytes keep_peak;      // while running forward and keeping, kept and output included
  platform::Bytes backward_peak;  // while running backward, kept and both gradients included
};

// Layers alike in everything share a class.
struct LayerClass {
  LayerKind kind = LayerKind::block;
  std::string name;  // "block", "dense block", "embedding", "head"
  std::vector<ParameterTensor> parameters;
  std::int64_t parameter_count = 0;
  std::int64_t active_parameter_count = 0;  // touched by one token (experts)
  std::vector<Operation> forward;           // head: with the loss
  std::vector<Operation> backward;          // without the recomputed forward
  LayerMemory memory;
};

struct LayerTable {
  Model model;
  Batch batch;
  std::vector<LayerClass> classes;
  std::vector<std::size_t> layers;  // class of each layer: embedding, blocks ..., head

  const LayerClass& layer(std::size_t index) const { return classes[layers[index]]; }
  // Unique parameters: a tied head's matrix counts once.
  std::int64_t parameters() const;
  std::int64_t active_parameters() const;
  // Forward and backward of one token, without recomputation.
  platform::Flops flops_per_token() const;
};

// Errors: Error(bad_input) when the sequence is longer than a learned position table.
// The tied head of a model holds no matrix of its own here: `parameters` of the head class then
// lacks it, while its operations read the embedding's.
LayerTable make_layer_table(const Model& model, const Batch& batch);

// Parameters of any model, planned or only counted (BERT, T5).
std::int64_t count_parameters(const Model& model);

}  // namespace offstage::workloads
