#include "workloads/working_set.h"

#include <algorithm>

#include "platform/error.h"
#include "workloads/operations.h"

namespace offstage::workloads {

using platform::Bytes;

platform::Bytes peak_bytes(const MemoryScript& script) {
  Bytes live;
  Bytes peak;
  for (const MemoryEvent& event : script) {
    live += event.bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

platform::Bytes kept_bytes(const MemoryScript& script) {
  Bytes live;
  for (const MemoryEvent& event : script) {
    live += event.bytes;
  }
  return live;
}

LayerMemory layer_memory(const Model& model, const Batch& batch, LayerKind kind,
                         const LayerScripts& scripts) {
  const Bytes boundary{element_size(batch.precision) * batch.micro_batch * batch.sequence_length *
                       model.hidden};
  // The head hands on a loss, not an activation; the embedding has no gradient to hand back.
  const Bytes output = kind == LayerKind::head ? Bytes{} : boundary;
  const Bytes input_gradient = kind == LayerKind::embedding ? Bytes{} : boundary;
  LayerMemory memory;
  memory.output = output;
  memory.kept = kept_bytes(scripts.forward_keep);
  memory.forward_peak = output + peak_bytes(scripts.forward);
  memory.keep_peak = output + peak_bytes(scripts.forward_keep);
  memory.backward_peak = output + input_gradient + peak_bytes(scripts.backward);
  return memory;
}

ScriptWriter ScriptWriter::after(const ScriptWriter& earlier) {
  ScriptWriter writer;
  writer.events_ = earlier.live_;
  writer.live_ = earlier.live_;
  return writer;
}

void ScriptWriter::take(const std::string& tensor, std::int64_t bytes) {
  const bool unused =
      std::ranges::none_of(live_, [&](const MemoryEvent& event) { return event.tensor == tensor; });
  OFFSTAGE_CHECK(unused, "tensor taken twice: " + tensor);
  events_.push_back({tensor, {bytes}});
  live_.push_back({tensor, {bytes}});
}

void ScriptWriter::drop(const std::string& tensor) {
  const auto found =
      std::ranges::find_if(live_, [&](const MemoryEvent& event) { return event.tensor == tensor; });
  OFFSTAGE_CHECK(found != live_.end(), "tensor dropped but not live: " + tensor);
  events_.push_back({tensor, Bytes{-found->bytes.value}});
  live_.erase(found);
}

void ScriptWriter::touch(const std::string& tensor, std::int64_t bytes) {
  take(tensor, bytes);
  drop(tensor);
}

}  // namespace offstage::workloads
