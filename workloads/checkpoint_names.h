#pragma once

#include <string>
#include <vector>

#include "workloads/layer_table.h"

// Under which names a model's tensors stand in a Hugging Face checkpoint. The layer table has them
// without the layer's prefix.
namespace offstage::workloads {

// Full names of a layer's tensors, in the table's order: "model.layers.3.mlp.up_proj.weight".
// Errors: Error(bad_input) for a family whose prefixes are not known here (GPT-2 and Llama-style
// models are: what the executor trains).
std::vector<std::string> checkpoint_names(const LayerTable& table, std::size_t layer);

// The prefix that checkpoints of a family's bare model leave out: the published gpt2 has
// "h.0.ln_1.weight" where a causal language model has "transformer.h.0.ln_1.weight".
std::string optional_prefix(const Model& model);

}  // namespace offstage::workloads
