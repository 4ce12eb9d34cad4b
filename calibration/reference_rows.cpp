#include "calibration/reference_rows.h"

#include <array>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "calibration/reference_csv.h"
#include "calibration/reference_model_reader.h"
#include "platform/document.h"
#include "platform/error.h"

namespace offstage::calibration {
namespace {

using platform::Bytes;
using platform::Node;
using scheduler::systems::Recompute;

// Bounds that keep slips of unit out: beyond any published run.
constexpr std::int64_t kMostCount = 100'000'000;
constexpr Bytes kMostMemory{std::int64_t{1} << 50};
constexpr double kMostParameters = 1e13, kLongestStep = 1e6, kMostTokens = 1e12, kMostTflops = 1e9;

template <typename Enum, std::size_t Size>
using Words = std::array<std::pair<std::string_view, Enum>, Size>;

constexpr Words<RowConfidence, 3> kConfidences{{{"high", RowConfidence::high},
                                                {"medium", RowConfidence::medium},
                                                {"low", RowConfidence::low}}};
constexpr Words<ModelFamily, 7> kFamilies{{{"gpt2", ModelFamily::gpt2},
                                           {"mpt", ModelFamily::mpt},
                                           {"opt", ModelFamily::opt},
                                           {"llama", ModelFamily::llama},
                                           {"qwen2", ModelFamily::qwen2},
                                           {"t5", ModelFamily::t5},
                                           {"codegen", ModelFamily::codegen}}};
constexpr Words<PublishedPrecision, 4> kPrecisions{{{"bf16", PublishedPrecision::bf16},
                                                    {"fp16", PublishedPrecision::fp16},
                                                    {"tf32", PublishedPrecision::tf32},
                                                    {"fp32", PublishedPrecision::fp32}}};
constexpr Words<Recompute, 3> kRecomputes{
    {{"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}}};
constexpr Words<PublishedPlace, 4> kPlaces{{{"gpu", PublishedPlace::gpu},
                                            {"cpu", PublishedPlace::cpu},
                                            {"nvme", PublishedPlace::nvme},
                                            {"auto", PublishedPlace::automatic}}};
constexpr Words<int, 4> kShardings{{{"none", 0}, {"zero1", 1}, {"zero2", 2}, {"zero3", 3}}};
constexpr Words<Outcome, 2> kOutcomes{{{"ok", Outcome::ok}, {"oom", Outcome::out_of_memory}}};

template <typename Enum, std::size_t Size>
Enum word(const Node& node, const Words<Enum, Size>& words) {
  std::vector<std::string> allowed;
  for (const auto& [name, value] : words) allowed.emplace_back(name);
  const std::string chosen = node.choice(allowed);
  for (const auto& [name, value] : words) {
    if (name == chosen) return value;
  }
  throw node.error(fmt::format("{} is unknown", chosen));
}

template <typename Enum, std::size_t Size>
std::optional<Enum> find_word(const Node& map, const char* key, const Words<Enum, Size>& words) {
  const auto node = map.find(key);
  return node ? std::optional(word(*node, words)) : std::nullopt;
}

std::string find_text(const Node& map, const char* key) {
  const auto node = map.find(key);
  return node ? node->text() : "";
}

std::optional<std::int64_t> find_count(const Node& map, const char* key) {
  const auto node = map.find(key);
  return node ? std::optional(node->integer(1, kMostCount)) : std::nullopt;
}

std::optional<bool> find_flag(const Node& map, const char* key) {
  const auto node = map.find(key);
  return node ? std::optional(node->boolean()) : std::nullopt;
}

// The value times `unit`, where it is positive and at most `high` units.
std::optional<double> find_number(const Node& map, const char* key, double high,
                                  double unit = 1.0) {
  const auto node = map.find(key);
  if (!node) return std::nullopt;
  const double value = node->number(0.0, high / unit);
  if (!(value > 0.0)) throw node->error("must be above 0; null when it was not published");
  return value * unit;
}

std::optional<Bytes> find_bytes(const Node& map, const char* key) {
  const auto node = map.find(key);
  return node ? std::optional(node->bytes({1}, kMostMemory)) : std::nullopt;
}

ReferenceMachine read_machine(const Node& node) {
  node.allow_keys({"gpu", "n_gpus", "nvlink", "host_memory_gb", "cpu"});
  const auto host =
      find_number(node, "host_memory_gb", static_cast<double>(kMostMemory.value), 1e9);
  return {
      .gpu = node.at("gpu").text(),
      .gpus = node.at("n_gpus").integer(1, kMostCount),
      .nvlink = find_flag(node, "nvlink"),
      .host_memory = host ? std::optional(Bytes{static_cast<std::int64_t>(*host)}) : std::nullopt,
      .cpu = find_text(node, "cpu")};
}

ReferenceParallel read_parallel(const Node& node) {
  node.allow_keys({"data", "tensor", "pipeline", "sharding", "sequence_parallel"});
  return {.data = find_count(node, "data"),
          .tensor = find_count(node, "tensor"),
          .pipeline = find_count(node, "pipeline"),
          .sharding = find_word(node, "sharding", kShardings),
          .sequence_parallel = find_flag(node, "sequence_parallel")};
}

ReferenceOffload read_offload(const Node& node) {
  node.allow_keys({"parameters", "optimizer", "activations"});
  return {.parameters = find_word(node, "parameters", kPlaces),
          .optimizer = find_word(node, "optimizer", kPlaces),
          .activations = find_word(node, "activations", kPlaces)};
}

Measured read_measured(const Node& node) {
  node.allow_keys({"step_s", "tokens_per_s", "total_tflops", "flop_rule", "gpu_peak_bytes",
                   "host_peak_bytes", "outcome", "largest_params_b"});
  Measured measured;
  if (const auto step = find_number(node, "step_s", kLongestStep)) {
    measured.step = platform::Seconds{*step};
  }
  measured.tokens_per_s = find_number(node, "tokens_per_s", kMostTokens);
  if (const auto rate = find_number(node, "total_tflops", kMostTflops * 1e12, 1e12)) {
    measured.throughput = platform::FlopsPerSecond{*rate};
  }
  measured.flop_rule = find_text(node, "flop_rule");
  measured.gpu_peak = find_bytes(node, "gpu_peak_bytes");
  measured.host_peak = find_bytes(node, "host_peak_bytes");
  measured.outcome = find_word(node, "outcome", kOutcomes);
  measured.largest_parameters = find_number(node, "largest_params_b", kMostParameters, 1e9);
  return measured;
}

ReferenceRow read_row(const Node& node) {
  node.allow_keys({"set", "id", "source", "url", "confidence", "machine", "model",
                   "sequence_length", "global_batch", "micro_batch", "precision", "system",
                   "system_detail", "parallel", "recompute", "offload", "measured", "note"});
  ReferenceRow row;
  row.set = node.at("set").text();
  row.id = node.at("id").text();
  row.source = find_text(node, "source");
  row.url = find_text(node, "url");
  row.note = find_text(node, "note");
  row.confidence = word(node.at("confidence"), kConfidences);
  row.machine = read_machine(node.at("machine"));
  node.at("model").allow_keys(model_size_keys());
  row.model = read_model_sizes(node.at("model"));
  row.sequence_length = find_count(node, "sequence_length");
  row.global_batch = find_count(node, "global_batch");
  row.micro_batch = find_count(node, "micro_batch");
  row.precision = find_word(node, "precision", kPrecisions);
  row.recompute = find_word(node, "recompute", kRecomputes);
  row.system = node.at("system").text();
  row.system_detail = find_text(node, "system_detail");
  if (const auto parallel = node.find("parallel")) row.parallel = read_parallel(*parallel);
  if (const auto offload = node.find("offload")) row.offload = read_offload(*offload);
  row.measured = read_measured(node.at("measured"));
  return row;
}

std::vector<ReferenceRow> read_yaml_rows(const std::string& file) {
  const platform::Document document = platform::Document::load(file);
  const Node root = document.root();
  root.allow_keys({"rows"});
  std::vector<ReferenceRow> rows;
  for (const Node& node : root.at("rows").items()) rows.push_back(read_row(node));
  return rows;
}

}  // namespace

std::vector<std::string> model_size_keys() {
  return {"name",  "family",   "params_b", "layers", "hidden",
          "heads", "kv_heads", "ffn",      "vocab",  "tied_embeddings"};
}

ReferenceModel read_model_sizes(const Node& node) {
  return {.name = find_text(node, "name"),
          .family = find_word(node, "family", kFamilies),
          .parameters = find_number(node, "params_b", kMostParameters, 1e9),
          .layers = find_count(node, "layers"),
          .hidden = find_count(node, "hidden"),
          .heads = find_count(node, "heads"),
          .kv_heads = find_count(node, "kv_heads"),
          .ffn = find_count(node, "ffn"),
          .vocab = find_count(node, "vocab"),
          .tied_embeddings = find_flag(node, "tied_embeddings")};
}

std::optional<int> find_sharding(const Node& map, const char* key) {
  return find_word(map, key, kShardings);
}

std::optional<PublishedPlace> find_place(const Node& map, const char* key) {
  return find_word(map, key, kPlaces);
}

std::vector<ReferenceRow> load_reference(const std::string& file) {
  std::vector<ReferenceRow> rows =
      file.ends_with(".csv") ? read_vtrain_rows(file) : read_yaml_rows(file);
  if (rows.empty()) throw Error(ErrorCode::bad_input, fmt::format("{}: no rows", file));
  std::set<std::string_view> ids;
  for (const ReferenceRow& row : rows) {
    if (!ids.insert(row.id).second) {
      throw Error(ErrorCode::bad_input,
                  fmt::format("{}: the id {} comes twice; each row has its own", file, row.id));
    }
  }
  return rows;
}

}  // namespace offstage::calibration
