#pragma once

#include <string>
#include <vector>

#include "platform/document.h"
#include "platform/machine.h"

// Reads what all kinds of machine files share: numbers written as {value, source, confidence}, GPU
// models with their tables, memory pools, collective curves. Bounds keep slips of unit out: a rate
// beyond them is refused with the range.
namespace offstage::platform {

// Errors of all: Error(bad_input) with place and allowed range.
Confidence read_confidence(const Node& node);
Sourced<Bytes> read_sourced_bytes(const Node& node);           // 1 B to 1 PiB
Sourced<BytesPerSecond> read_sourced_rate(const Node& node);   // 1 B/s to 1e15
Sourced<FlopsPerSecond> read_sourced_flops(const Node& node);  // 1 to 1e19
Sourced<Seconds> read_sourced_seconds(const Node& node);       // 1e-15 s to 1000

// name, memory, tables and so on, as catalog/*.yaml show. A model whose arithmetic runs on the CPU
// has no context, collective buffers or bf16 peak; their absence reads as 0. The key `reserves` is
// allowed and left to the caller: it belongs to the pool of each such GPU.
GpuModel read_gpu_model(const Node& node);

// A rate above the peak is a slip of unit or of a digit, and makes every plan look good. `node` is
// the one `model` was read from.
// Errors: Error(bad_input) with place.
void check_against_peak(const Node& node, const GpuModel& model);

// A list of {what, bytes: {value, source, confidence}}.
std::vector<Reserve> read_reserves(const Node& node);

// A list of {kind, source, confidence, points: [[bytes, seconds], ...]}; all three kinds are there.
std::vector<CollectiveCurve> read_collectives(const Node& node);

std::string to_string(Confidence confidence);
std::string to_string(Precision precision);
std::string to_string(CollectiveKind kind);

}  // namespace offstage::platform
