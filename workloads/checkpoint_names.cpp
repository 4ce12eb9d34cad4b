#include "workloads/checkpoint_names.h"

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::workloads {
namespace {

struct Prefixes {
  const char* model;   // of everything but the head's matrix
  const char* blocks;  // of block i, before "{i}."
};

Prefixes prefixes(const Model& model) {
  switch (model.family) {
    case Family::gpt2:
      return {"transformer.", "h."};
    case Family::llama:
      return {"model.", "layers."};
    default:
      throw Error(ErrorCode::bad_input,
                  fmt::format("{} ({}): offstage knows the checkpoint names of GPT-2 and "
                              "Llama-style models only",
                              model.name, model.architecture));
  }
}

}  // namespace

std::vector<std::string> checkpoint_names(const LayerTable& table, std::size_t layer) {
  const auto [root, blocks] = prefixes(table.model);
  const LayerClass& info = table.layer(layer);
  std::vector<std::string> names;
  for (const ParameterTensor& tensor : info.parameters) {
    // Of the three kinds of layer only the head has a tensor outside the model proper.
    if (tensor.name.starts_with("lm_head.")) {
      names.push_back(tensor.name);
    } else if (info.kind == LayerKind::block) {
      names.push_back(fmt::format("{}{}{}.{}", root, blocks, layer - 1, tensor.name));
    } else {
      names.push_back(root + tensor.name);
    }
  }
  return names;
}

std::string optional_prefix(const Model& model) { return prefixes(model).model; }

}  // namespace offstage::workloads
