#pragma once

#include <string>
#include <vector>

#include "platform/document.h"
#include "workloads/model.h"

// Finds a model's config: by a name in workloads/models, by the path of a config.json (or of the
// folder that holds one), or written inline.
//
//   const ModelConfig config = load_model("llama-2-7b", data + "/workloads/models");
//   config.model.layers   // 32
namespace offstage::workloads {

struct ModelConfig {
  Model model;
  // All keys of the config as JSON text, alphabetical, with the model's name as `_name_or_path`;
  // reading that text back gives the same model under the same name.
  std::string json;
};

// A word without '/' and '.json' is a name in `models_directory`; a relative path is taken from the
// working directory.
// Errors: Error(bad_input) for an unknown name, with the known ones and the nearest match, and as
// read_hf_config.
ModelConfig load_model(const std::string& name_or_path, const std::string& models_directory);

// The value of `model:` in a run config: a name, a path (a relative one is taken from the file's
// folder) or a map of Hugging Face keys, named by `_name_or_path` or else by its architecture.
ModelConfig read_model(const platform::Node& node, const std::string& models_directory);

// Names in the folder, sorted.
std::vector<std::string> model_names(const std::string& models_directory);

}  // namespace offstage::workloads
