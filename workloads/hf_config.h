#pragma once

#include <string>
#include <vector>

#include "platform/document.h"
#include "workloads/model.h"

// Reads a Hugging Face config.json, or an inline map of the same keys, into a Model. The file's
// first entry of `architectures` decides which keys count; without one, `model_type` does.
//
//   const Model model = read_hf_config(platform::Document::load("llama-2-7b.json"));
//   model.layers   // 32
namespace offstage::workloads {

// The model's name is the file's stem, or the folder's name when the file is called config.json.
// Errors: Error(bad_input) with file, line and column: an architecture that is not supported (the
// message lists those that are), a size that is missing, out of range or of the wrong type, heads
// that do not divide, or a variant whose parameters offstage does not know how to count.
Model read_hf_config(const platform::Document& document);
Model read_hf_config(const platform::Node& node, std::string name);

// What transformers calls a model it is to load: the keys `architectures` and `model_type`.
struct SavedKind {
  std::string architecture, model_type;
};
SavedKind saved_kind(const Model& model);

// The names accepted in `architectures`, in alphabetical order.
std::vector<std::string> supported_architectures();

}  // namespace offstage::workloads
