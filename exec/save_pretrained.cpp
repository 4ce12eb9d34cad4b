#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "exec/atomic_file.h"
#include "exec/pretrained.h"
#include "platform/error.h"
#include "workloads/checkpoint_names.h"
#include "workloads/hf_config.h"

namespace offstage::exec {
namespace {

namespace fs = std::filesystem;
using scheduler::SavedType;
using workloads::LayerTable;
using workloads::ParameterTensor;

// Halfway from f16's largest number, 65504, to what would be the next: it rounds to infinity.
constexpr float kBeyondF16 = 65520.0F;

StoredType stored_type(SavedType type) {
  switch (type) {
    case SavedType::f32:
      return StoredType::f32;
    case SavedType::f16:
      return StoredType::f16;
    case SavedType::bf16:
      break;
  }
  return StoredType::bf16;
}

const char* torch_name(SavedType type) {
  switch (type) {
    case SavedType::f32:
      return "float32";
    case SavedType::f16:
      return "float16";
    case SavedType::bf16:
      break;
  }
  return "bfloat16";
}

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error || !fs::is_directory(path)) {
    throw Error(ErrorCode::io, fmt::format("{}: can't be made a folder: {}", path,
                                           error ? error.message() : "there is a file"));
  }
}

// The workload's config, with the keys without which transformers would not load it or would load
// something else. torch_dtype is read by its versions 4 and 5, dtype by 5 alone.
std::string saved_config(const workloads::Workload& workload, SavedType type) {
  auto config = nlohmann::json::parse(workload.model_config);
  const workloads::Model& model = workload.model;
  const auto kind = workloads::saved_kind(model);
  config["architectures"] = {kind.architecture};
  config["model_type"] = kind.model_type;
  config["tie_word_embeddings"] = model.tied_embeddings;
  config["torch_dtype"] = torch_name(type);
  config.erase("dtype");
  return config.dump(2) + "\n";
}

// All tensors in the table's order, and where each begins among the weights of its layer.
struct Tensors {
  struct Place {
    std::size_t layer = 0;
    std::int64_t first = 0;
  };
  std::vector<ParameterTensor> list;
  std::vector<Place> places;
};

Tensors all_tensors(const LayerTable& table) {
  Tensors all;
  for (std::size_t layer = 0; layer < table.layers.size(); ++layer) {
    const auto names = workloads::checkpoint_names(table, layer);
    std::int64_t first = 0;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const ParameterTensor& tensor = table.layer(layer).parameters[i];
      all.list.push_back({names[i], tensor.shape});
      all.places.push_back({layer, first});
      first += tensor.elements();
    }
  }
  return all;
}

void require_storable(const std::string& name, std::span<const float> values, SavedType type) {
  const bool half = type == SavedType::f16;
  for (const float value : values) {
    if (!std::isfinite(value) || (half && std::abs(value) >= kBeyondF16)) {
      throw Error(ErrorCode::bad_input,
                  fmt::format("'{}' holds {}: {}", name, value,
                              half ? "not finite, or too large for f16; save as bf16 or f32"
                                   : "no finite weight"));
    }
  }
}

// Weights of an earlier save, in more files or in fewer, would be loaded in place of these.
void remove_leftovers(const fs::path& folder, const std::set<std::string>& written) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool weights = name == "model.safetensors" || name == "model.safetensors.index.json" ||
                         (name.starts_with("model-") && name.ends_with(".safetensors"));
    if (weights && !written.contains(name)) fs::remove(entry.path());
  }
}

}  // namespace

WeightSource trained_weights(const scheduler::Plan& plan, const ParameterState& state,
                             const NvmeStore* nvme) {
  return [&plan, &state, nvme](std::size_t layer, std::int64_t first, std::span<float> out) {
    const std::int64_t begin = state.numbers().first(layer);
    read_state(plan, state, nvme, {StatePart::master, begin + first}, out);
  };
}

void require_saveable(const scheduler::TrainConfig& config) {
  if (!config.save) return;
  const std::string& folder = config.save->directory;
  make_folder(folder);
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    throw Error(ErrorCode::io, fmt::format("{}: the trained model can't be written there", folder));
  }
  if (!config.initialise_from) return;
  const fs::path from = *config.initialise_from;
  std::error_code ignored;
  if (fs::equivalent(fs::is_directory(from, ignored) ? from : from.parent_path(), folder,
                     ignored)) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format("train.save.directory: {} holds the checkpoint that the training starts "
                    "from (train.initialise_from); name another folder",
                    folder));
  }
}

void save_pretrained(const scheduler::SaveConfig& save, const workloads::Workload& workload,
                     const LayerTable& table, const WeightSource& weights,
                     std::int64_t largest_file_bytes) {
  make_folder(save.directory);
  AtomicFile config((fs::path(save.directory) / "config.json").string());
  config.write(saved_config(workload, save.type));
  const Tensors tensors = all_tensors(table);
  const auto written = write_safetensors(
      save.directory, tensors.list, {stored_type(save.type), largest_file_bytes},
      [&](std::size_t index, std::int64_t first, std::span<float> out) {
        weights(tensors.places[index].layer, tensors.places[index].first + first, out);
        require_storable(tensors.list[index].name, out, save.type);
      });
  config.commit();
  remove_leftovers(save.directory, {written.begin(), written.end()});
}

}  // namespace offstage::exec
