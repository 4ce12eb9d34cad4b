#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "platform/units.h"
#include "workloads/layer_table.h"
#include "workloads/parameters.h"

// Which temporaries a layer's pass holds, as a script of allocations and frees in the order in
// which the executor's block code makes them. Walking a script gives the peak; a LayerTable's
// LayerMemory comes from here. The scripts of GPT-2 and Llama in f32 follow exec/gpt2_block.cpp,
// exec/llama_block.cpp and exec/edge_layers.cpp tensor by tensor; the others follow the same rules.
//
//   const LayerScripts scripts = block_scripts(model, batch, BlockKind::dense);
//   peak_bytes(scripts.backward);   // most bytes of temporaries live at once
namespace offstage::workloads {

// Note [What a script leaves out]
// Input, output and the gradients of both, weights and weight gradients lie in slots or belong to
// the layers next door: whoever runs the layer counts them. The header a tensor carries and the
// rounding of the real allocation are not charged either (exec/arena.h).

struct MemoryEvent {
  std::string tensor;
  platform::Bytes bytes;  // taken; negative: given back
};
using MemoryScript = std::vector<MemoryEvent>;

struct LayerScripts {
  MemoryScript forward;       // keeping nothing
  MemoryScript forward_keep;  // ends with what is kept still live
  // Begins by taking what forward_keep left, so that it can be walked by itself.
  MemoryScript backward;
};

platform::Bytes peak_bytes(const MemoryScript& script);
// Live at the end.
platform::Bytes kept_bytes(const MemoryScript& script);

// Precondition of the three: plannable(model).
LayerScripts embedding_scripts(const Model& model, const Batch& batch);
LayerScripts block_scripts(const Model& model, const Batch& batch, BlockKind kind);
LayerScripts head_scripts(const Model& model, const Batch& batch);

// The summary of a layer's scripts; adds outputs and gradients, which the scripts leave out.
LayerMemory layer_memory(const Model& model, const Batch& batch, LayerKind kind,
                         const LayerScripts& scripts);

// Writes one script. Tensors are known by name until they are freed.
class ScriptWriter {
 public:
  // A script that starts by taking everything that `earlier` left live.
  static ScriptWriter after(const ScriptWriter& earlier);

  // Errors: OFFSTAGE_CHECK when a tensor of that name is live, or (drop) is not.
  void take(const std::string& tensor, std::int64_t bytes);
  void drop(const std::string& tensor);
  // Taken and given back at once: scratch inside one operation.
  void touch(const std::string& tensor, std::int64_t bytes);

  MemoryScript script() const { return events_; }

 private:
  MemoryScript events_;
  std::vector<MemoryEvent> live_;  // in the order taken
};

}  // namespace offstage::workloads
