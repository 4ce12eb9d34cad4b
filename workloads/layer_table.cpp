#include "workloads/layer_table.h"

#include <utility>

#include <fmt/format.h>

#include "platform/error.h"
#include "workloads/operations.h"
#include "workloads/parameters.h"
#include "workloads/working_set.h"

namespace offstage::workloads {
namespace {

// Far beyond any machine, and small enough that no number of bytes overflows.
constexpr std::int64_t kMaxMicroBatch = std::int64_t{1} << 16;
constexpr std::int64_t kMaxSequence = std::int64_t{1} << 24;
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 28;

void check_range(const char* what, std::int64_t value, std::int64_t high) {
  if (value < 1 || value > high) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{} must be between 1 and {}, got {}", what, high, value));
  }
}

void check_batch(const Model& model, const Batch& batch) {
  if (!plannable(model)) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{} ({}) is an encoder model: offstage counts its parameters but plans "
                            "decoder-only models; choose a causal language model",
                            model.name, model.architecture));
  }
  check_range("micro_batch", batch.micro_batch, kMaxMicroBatch);
  check_range("sequence_length", batch.sequence_length, kMaxSequence);
  check_range("the tokens of a micro-batch", batch.micro_batch * batch.sequence_length, kMaxTokens);
  if (model.positions == Positions::learned && batch.sequence_length > model.max_positions) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format("sequence_length {} is longer than the {} positions that {} has "
                    "learned; choose at most {}",
                    batch.sequence_length, model.max_positions, model.name, model.max_positions));
  }
}

LayerClass make_class(const Model& model, const Batch& batch, LayerKind kind, Passes passes,
                      const LayerScripts& scripts) {
  LayerClass result;
  result.kind = kind;
  result.forward = std::move(passes.forward);
  result.backward = std::move(passes.backward);
  result.memory = layer_memory(model, batch, kind, scripts);
  return result;
}

void set_parameters(LayerClass& layer, std::vector<ParameterTensor> tensors) {
  layer.parameters = std::move(tensors);
  layer.parameter_count = total_elements(layer.parameters);
  layer.active_parameter_count = layer.parameter_count;
}

LayerClass embedding_class(const Model& model, const Batch& batch) {
  LayerClass layer =
      make_class(model, batch, LayerKind::embedding, embedding_operations(model, batch),
                 embedding_scripts(model, batch));
  layer.name = "embedding";
  set_parameters(layer, embedding_parameters(model));
  return layer;
}

LayerClass block_class(const Model& model, const Batch& batch, BlockKind kind) {
  LayerClass layer =
      make_class(model, batch, LayerKind::block, block_operations(model, batch, kind),
                 block_scripts(model, batch, kind));
  layer.name = kind == BlockKind::experts ? "expert block"
               : model.experts            ? "dense block"
                                          : "block";
  set_parameters(layer, block_parameters(model, kind));
  layer.active_parameter_count = active_elements(model, kind, layer.parameters);
  return layer;
}

LayerClass head_class(const Model& model, const Batch& batch) {
  LayerClass layer = make_class(model, batch, LayerKind::head, head_operations(model, batch),
                                head_scripts(model, batch));
  layer.name = "head";
  set_parameters(layer, head_parameters(model));
  return layer;
}

}  // namespace

std::int64_t LayerTable::parameters() const {
  std::int64_t sum = 0;
  for (const std::size_t index : layers) {
    sum += classes[index].parameter_count;
  }
  return sum;
}

std::int64_t LayerTable::active_parameters() const {
  std::int64_t sum = 0;
  for (const std::size_t index : layers) {
    sum += classes[index].active_parameter_count;
  }
  return sum;
}

platform::Flops LayerTable::flops_per_token() const {
  platform::Flops sum;
  for (const std::size_t index : layers) {
    for (const Operation& operation : classes[index].forward) {
      sum += operation.flops;
    }
    for (const Operation& operation : classes[index].backward) {
      sum += operation.flops;
    }
  }
  const double tokens = static_cast<double>(batch.micro_batch * batch.sequence_length);
  return {sum.value / tokens};
}

LayerTable make_layer_table(const Model& model, const Batch& batch) {
  check_batch(model, batch);
  LayerTable table;
  table.model = model;
  table.batch = batch;
  const auto append = [&table](LayerClass layer, std::int64_t count) {
    table.layers.insert(table.layers.end(), static_cast<std::size_t>(count), table.classes.size());
    table.classes.push_back(std::move(layer));
  };
  append(embedding_class(model, batch), 1);
  for (const BlockKind kind : {BlockKind::dense, BlockKind::experts}) {
    if (const std::int64_t count = block_count(model, kind); count > 0) {
      append(block_class(model, batch, kind), count);
    }
  }
  append(head_class(model, batch), 1);
  return table;
}

std::int64_t count_parameters(const Model& model) {
  if (!plannable(model)) {
    return total_elements(encoder_parameters(model));
  }
  std::int64_t sum =
      total_elements(embedding_parameters(model)) + total_elements(head_parameters(model));
  for (const BlockKind kind : {BlockKind::dense, BlockKind::experts}) {
    if (const std::int64_t count = block_count(model, kind); count > 0) {
      sum += count * total_elements(block_parameters(model, kind));
    }
  }
  return sum;
}

}  // namespace offstage::workloads
