#pragma once

#include <string>

#include "workloads/working_set.h"
#include "workloads/working_sizes.h"

// The scripts of each kind of block, and the pieces they share. working_set.h is the way in for
// other folders.
namespace offstage::workloads {

LayerScripts gpt2_block_scripts(const Model& model, const WorkingSizes& sizes);  // working_gpt2.cpp
LayerScripts parallel_block_scripts(const Model& model,
                                    const WorkingSizes& sizes);  // working_parallel.cpp
LayerScripts llama_block_scripts(const Model& model, const WorkingSizes& sizes,
                                 BlockKind kind);  // working_llama.cpp

// Pieces of Llama-style blocks that follow another scheme. `keep`: nothing is dropped that backward
// needs. Precondition: model.latent, model.experts.
void latent_attention_forward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes,
                              bool keep);  // working_latent.cpp
void latent_attention_backward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes);
void expert_ffn_forward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes,
                        bool keep);  // working_experts.cpp
void expert_ffn_backward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes);

// working_norm.cpp. A norm of `width` columns from what is live to `result`; without `keep` its
// statistics are dropped again.
struct NormStep {
  std::string norm;    // "norm1"
  std::string result;  // "attention_in"
  std::int64_t width = 0;
  bool keep = false;
};
void norm_forward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes,
                  const NormStep& step);
// From `dy`, used up, to `dx`, together with the statistics of `norm`.
struct NormBackwardStep {
  std::string norm;
  std::string dy;
  std::string dx;
  std::int64_t width = 0;
};
void norm_backward(ScriptWriter& writer, const Model& model, const WorkingSizes& sizes,
                   const NormBackwardStep& step);
// The gradients of a linear map's weight and bias before they are added to the accumulated ones.
struct LinearGradient {
  std::string name;
  std::int64_t out = 0, in = 0;
  bool bias = false;
};
void touch_linear_gradient(ScriptWriter& writer, const WorkingSizes& sizes,
                           const LinearGradient& linear);

}  // namespace offstage::workloads
