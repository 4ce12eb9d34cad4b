#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platform/units.h"
#include "scheduler/systems/system_strategy.h"

// Published measurements, as their sources print them: what a prediction is held against. An empty
// value was not published. calibration/reference/README.md describes the files.
//
//   for (const ReferenceRow& row : load_reference("calibration/reference/training.yaml"))
//     if (row.measured.step) ...
namespace offstage::calibration {

// How far a figure can be trusted: read in a table or log; a setting missing or inferred; read off
// a plot, ambiguous, or repeated in the source.
enum class RowConfidence { high, medium, low };

enum class ModelFamily { gpt2, mpt, opt, llama, qwen2, t5, codegen };

enum class PublishedPrecision { bf16, fp16, tf32, fp32 };

// `automatic`: the system decided.
enum class PublishedPlace { gpu, cpu, nvme, automatic };

enum class Outcome { ok, out_of_memory };

struct ReferenceMachine {
  std::string gpu;  // "A100-80GB"
  std::int64_t gpus = 0;
  std::optional<bool> nvlink;
  std::optional<platform::Bytes> host_memory;  // nominal
  std::string cpu;
};

struct ReferenceModel {
  std::string name;
  std::optional<ModelFamily> family;
  std::optional<double> parameters;
  std::optional<std::int64_t> layers, hidden, heads, kv_heads, ffn, vocab;
  std::optional<bool> tied_embeddings;
};

struct ReferenceParallel {
  std::optional<std::int64_t> data, tensor, pipeline;
  std::optional<int> sharding;  // ZeRO stage
  std::optional<bool> sequence_parallel;
};

struct ReferenceOffload {
  std::optional<PublishedPlace> parameters, optimizer, activations;
};

struct Measured {
  std::optional<platform::Seconds> step;
  std::optional<double> tokens_per_s;                  // of the whole machine
  std::optional<platform::FlopsPerSecond> throughput;  // of the whole machine, by flop_rule
  std::string flop_rule;
  std::optional<platform::Bytes> gpu_peak;   // of the largest GPU
  std::optional<platform::Bytes> host_peak;  // of the whole machine
  std::optional<Outcome> outcome;
  std::optional<double> largest_parameters;  // of the largest model that ran
};

struct ReferenceRow {
  std::string set, id;
  std::string source, url, note;
  RowConfidence confidence = RowConfidence::high;
  ReferenceMachine machine;
  ReferenceModel model;
  std::optional<std::int64_t> sequence_length;            // tokens
  std::optional<std::int64_t> global_batch, micro_batch;  // sequences
  std::optional<PublishedPrecision> precision;
  std::optional<scheduler::systems::Recompute> recompute;
  std::string system;         // "megatron"
  std::string system_detail;  // name and version as published
  ReferenceParallel parallel;
  ReferenceOffload offload;
  Measured measured;
};

// Reads a file of either schema: `.csv` has the columns of vtrain.csv, everything else the keys of
// training.yaml. Rows keep the file's order.
// Errors: Error(bad_input) with file, line, the value and what is allowed; also for an id that
// comes twice, and a file without rows.
// Thread: any; a CSV file is read by the calling thread alone.
std::vector<ReferenceRow> load_reference(const std::string& file);

}  // namespace offstage::calibration
