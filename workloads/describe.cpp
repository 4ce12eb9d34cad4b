#include "workloads/describe.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "platform/format.h"

namespace offstage::workloads {
namespace {

using nlohmann::json;
using platform::to_text;

constexpr std::int64_t kUsualSequence = 2048;

platform::Flops sum_flops(const std::vector<Operation>& operations) {
  platform::Flops sum;
  for (const Operation& operation : operations) {
    sum += operation.flops;
  }
  return sum;
}

int sum_kernels(const std::vector<Operation>& operations) {
  int sum = 0;
  for (const Operation& operation : operations) {
    sum += operation.kernels;
  }
  return sum;
}

const char* name_of(LayerKind kind) {
  switch (kind) {
    case LayerKind::embedding:
      return "embedding";
    case LayerKind::head:
      return "head";
    case LayerKind::block:
      break;
  }
  return "block";
}

const char* name_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::gemm:
      return "gemm";
    case OperationKind::attention:
      return "attention";
    case OperationKind::memory:
      break;
  }
  return "memory";
}

const char* name_of(platform::Precision precision) {
  return precision == platform::Precision::bf16 ? "bf16" : "f32";
}

std::int64_t layers_of(const LayerTable& table, std::size_t class_index) {
  return std::ranges::count(table.layers, class_index);
}

std::string shape_text(const Operation& operation) {
  if (operation.kind == OperationKind::gemm) {
    const auto shape = fmt::format("{} x {} x {}", operation.m, operation.n, operation.k);
    return operation.count == 1 ? shape : fmt::format("{}, {} times", shape, operation.count);
  }
  if (operation.kind == OperationKind::attention) {
    return fmt::format("{} tokens, head {}{}", operation.sequence_length, operation.head_dim,
                       operation.causal ? ", causal" : "");
  }
  return "";
}

std::string class_text(const LayerClass& layer) {
  std::string text = fmt::format("\n{}\n", layer.name);
  for (const auto* pass : {&layer.forward, &layer.backward}) {
    text += pass == &layer.forward ? "  forward\n" : "  backward\n";
    for (const Operation& operation : *pass) {
      text += fmt::format("    {:<28}{:<10}{:>12}{:>12}{:>4}  {}\n", operation.name,
                          name_of(operation.kind),
                          operation.flops.value > 0.0 ? to_text(operation.flops) : "",
                          to_text(operation.bytes), operation.kernels, shape_text(operation));
    }
  }
  return text;
}

json shape_json(const ParameterTensor& tensor) {
  return {{"name", tensor.name}, {"shape", tensor.shape}};
}

json operation_json(const Operation& operation) {
  json result = {{"name", operation.name},
                 {"kind", name_of(operation.kind)},
                 {"flops", operation.flops.value},
                 {"bytes", operation.bytes.value},
                 {"kernels", operation.kernels}};
  if (operation.kind == OperationKind::gemm) {
    result.update(
        {{"m", operation.m}, {"n", operation.n}, {"k", operation.k}, {"count", operation.count}});
  } else if (operation.kind == OperationKind::attention) {
    result.update({{"head_dim", operation.head_dim},
                   {"sequence_length", operation.sequence_length},
                   {"causal", operation.causal}});
  }
  return result;
}

json memory_json(const LayerMemory& memory) {
  return {{"output_bytes", memory.output.value},
          {"kept_bytes", memory.kept.value},
          {"forward_peak_bytes", memory.forward_peak.value},
          {"keep_peak_bytes", memory.keep_peak.value},
          {"backward_peak_bytes", memory.backward_peak.value}};
}

json class_json(const LayerClass& layer, std::int64_t layers) {
  json tensors = json::array();
  for (const ParameterTensor& tensor : layer.parameters) {
    tensors.push_back(shape_json(tensor));
  }
  json forward = json::array();
  for (const Operation& operation : layer.forward) {
    forward.push_back(operation_json(operation));
  }
  json backward = json::array();
  for (const Operation& operation : layer.backward) {
    backward.push_back(operation_json(operation));
  }
  return {{"name", layer.name},
          {"kind", name_of(layer.kind)},
          {"layers", layers},
          {"tensors", tensors},
          {"forward", forward},
          {"backward", backward},
          {"memory", memory_json(layer.memory)}};
}

json layer_json(const LayerClass& layer, std::size_t index) {
  return {{"index", index},
          {"kind", name_of(layer.kind)},
          {"class", layer.name},
          {"parameters", layer.parameter_count},
          {"forward_flops", sum_flops(layer.forward).value},
          {"backward_flops", sum_flops(layer.backward).value},
          {"output_bytes", layer.memory.output.value},
          {"kept_bytes", layer.memory.kept.value}};
}

json heading_json(const Model& model) {
  return {{"model", model.name},
          {"architecture", model.architecture},
          {"plannable", plannable(model)},
          {"parameters", count_parameters(model)},
          {"layers", json::array()}};
}

}  // namespace

Batch usual_batch(const Model& model) {
  const std::int64_t positions = model.max_positions > 0 ? model.max_positions : kUsualSequence;
  return {.micro_batch = 1,
          .sequence_length = std::min(positions, kUsualSequence),
          .precision = platform::Precision::bf16};
}

std::string describe_model(const Model& model, const Batch& batch) {
  std::string text = fmt::format(
      "{} ({}): {} parameters ({})\n", model.name, model.architecture, count_parameters(model),
      platform::count_text(static_cast<double>(count_parameters(model))));
  if (!plannable(model)) {
    return text +
           "An encoder model: offstage counts its parameters but plans decoder-only models.\n";
  }
  const LayerTable table = make_layer_table(model, batch);
  if (table.active_parameters() != table.parameters()) {
    text += fmt::format("{} of them are used by one token.\n", table.active_parameters());
  }
  text += fmt::format(
      "{} for each token, forward and backward. Below: {} x {} tokens in {}.\n\n"
      "{:>7} {:<14}{:>16}{:>14}{:>14}{:>12}{:>12}{:>9}\n",
      to_text(table.flops_per_token()), batch.micro_batch, batch.sequence_length,
      name_of(batch.precision), "layers", "class", "parameters", "forward", "backward", "output",
      "kept", "kernels");
  for (std::size_t i = 0; i < table.classes.size(); ++i) {
    const LayerClass& layer = table.classes[i];
    text += fmt::format("{:>7} {:<14}{:>16}{:>14}{:>14}{:>12}{:>12}{:>9}\n", layers_of(table, i),
                        layer.name, layer.parameter_count, to_text(sum_flops(layer.forward)),
                        to_text(sum_flops(layer.backward)), to_text(layer.memory.output),
                        to_text(layer.memory.kept),
                        sum_kernels(layer.forward) + sum_kernels(layer.backward));
  }
  for (const LayerClass& layer : table.classes) {
    text += class_text(layer);
  }
  return text;
}

json model_to_json(const Model& model, const Batch& batch) {
  json result = heading_json(model);
  if (!plannable(model)) {
    return result;
  }
  const LayerTable table = make_layer_table(model, batch);
  result["active_parameters"] = table.active_parameters();
  result["flops_per_token"] = table.flops_per_token().value;
  result["micro_batch"] = batch.micro_batch;
  result["sequence_length"] = batch.sequence_length;
  result["precision"] = name_of(batch.precision);
  for (std::size_t i = 0; i < table.layers.size(); ++i) {
    result["layers"].push_back(layer_json(table.layer(i), i));
  }
  json classes = json::array();
  for (std::size_t i = 0; i < table.classes.size(); ++i) {
    classes.push_back(class_json(table.classes[i], layers_of(table, i)));
  }
  result["classes"] = classes;
  return result;
}

}  // namespace offstage::workloads
