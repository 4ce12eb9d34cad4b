#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "exec/open_file.h"
#include "workloads/layer_table.h"

// Weights in Hugging Face's safetensors format: one file, or several with an index. Both ways are
// streamed through small buffers: no tensor is ever held a second time.
// Source: huggingface/safetensors README, "Format": 8 bytes little-endian length N, N bytes of JSON
// {"name": {"dtype", "shape", "data_offsets": [begin, end]}}, then the data.
//
//   const SafetensorsReader in("models/gpt2");        // a folder, an index, or one file
//   in.read(in.at("wte.weight"), 0, floats);          // bf16, f16 and f32 all come out as f32
namespace offstage::exec {

enum class StoredType { f32, f16, bf16 };
inline std::int64_t element_bytes(StoredType type) { return type == StoredType::f32 ? 4 : 2; }

struct StoredTensor {
  std::string name;
  StoredType type = StoredType::f32;
  std::vector<std::int64_t> shape;
  std::size_t file = 0;     // which of the reader's
  std::uint64_t begin = 0;  // of its data in that file
  std::int64_t elements() const;
};

// Bytes [begin, end) of a file's data.
struct Extent {
  std::uint64_t begin = 0, end = 0;
};

class SafetensorsReader {
 public:
  // Errors: Error(io) when a file can't be read; Error(bad_input) for a folder without any, or
  // naming the file for a header that is malformed, offsets outside the file or that overlap, or a
  // size that is not the shape's.
  explicit SafetensorsReader(const std::string& path);

  bool contains(const std::string& name) const { return tensors_.contains(name); }
  // Errors: Error(bad_input) naming the nearest tensor there is, or an element type that is not
  // f32, f16 or bf16.
  const StoredTensor& at(const std::string& name) const;
  std::size_t size() const { return tensors_.size(); }
  std::vector<std::string> names() const;  // in alphabetical order

  // Elements first ... first + out.size() - 1 as f32.
  // Thread: several may read at once.
  // Errors: Error(io) naming the file.
  void read(const StoredTensor& tensor, std::int64_t first, std::span<float> out) const;

 private:
  struct Entry {
    StoredTensor tensor;
    std::string dtype;  // as the file has it; may be one that can't be read
  };

  void open_file(const std::string& path);
  void open_index(const std::string& path);
  Extent add_tensor(const std::string& name, const nlohmann::json& entry, std::uint64_t data);

  std::string path_;
  std::vector<OpenFile> files_;
  std::map<std::string, Entry> tensors_;
};

// Hugging Face's own default. Source: transformers PreTrainedModel.save_pretrained,
// max_shard_size="5GB" of versions 4.
constexpr std::int64_t kLargestFileBytes = 5'000'000'000;

struct SafetensorsOptions {
  StoredType type = StoredType::f32;
  std::int64_t largest_file_bytes = kLargestFileBytes;  // but for a larger tensor
};

// Fills in elements first ... first + out.size() - 1 of tensors[index].
using TensorSource =
    std::function<void(std::size_t index, std::int64_t first, std::span<float> out)>;

// Writes model.safetensors, or model-00001-of-0000N.safetensors and their index, into an existing
// folder. Every file is complete under its name or not there: written aside, synced and renamed.
// bf16 and f16 are rounded to nearest even.
// Returns the names of the files in the folder.
// Errors: Error(io) naming the file (a full disk); what was there before is then still there.
std::vector<std::string> write_safetensors(const std::string& folder,
                                           std::span<const workloads::ParameterTensor> tensors,
                                           const SafetensorsOptions& options,
                                           const TensorSource& source);

}  // namespace offstage::exec
