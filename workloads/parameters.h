#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "workloads/layer_table.h"
#include "workloads/model.h"

// The parameter tensors of each kind of layer, named and shaped as in Hugging Face checkpoints, in
// the order in which a forward pass first reads them. layer_table.h is the way in for other
// folders.
namespace offstage::workloads {

// Which feed-forward a block has; models without experts have dense blocks only.
enum class BlockKind { dense, experts };

// Blocks of that kind; the dense ones come first.
std::int64_t block_count(const Model& model, BlockKind kind);

// Precondition of the three: plannable(model).
std::vector<ParameterTensor> embedding_parameters(const Model& model);
std::vector<ParameterTensor> block_parameters(const Model& model, BlockKind kind);
// Final norm and output matrix; the matrix is absent when it is the embedding's.
std::vector<ParameterTensor> head_parameters(const Model& model);

// Every tensor of a BERT (embeddings, encoder, pooler: what BertModel holds) or a T5, with full
// names; one shared between stacks stands once.
std::vector<ParameterTensor> encoder_parameters(const Model& model);

std::int64_t total_elements(const std::vector<ParameterTensor>& tensors);

// Of one block, with the experts that a token does not visit left out.
std::int64_t active_elements(const Model& model, BlockKind kind,
                             const std::vector<ParameterTensor>& tensors);

// Collects tensors under their names.
class TensorList {
 public:
  void add(std::string name, std::vector<std::int64_t> shape);
  // name.weight [out, in] and name.bias [out].
  void linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias);
  // The same stored transposed, as GPT-2's Conv1D does: name.weight [in, out].
  void transposed_linear(const std::string& name, std::int64_t out, std::int64_t in, bool bias);
  // name.weight [size] and, for layer norms with one, name.bias [size].
  void norm(const std::string& name, std::int64_t size, bool bias);
  std::vector<ParameterTensor> take() { return std::move(tensors_); }

 private:
  std::vector<ParameterTensor> tensors_;
};

}  // namespace offstage::workloads
