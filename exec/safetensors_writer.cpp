#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "exec/atomic_file.h"
#include "exec/bf16.h"
#include "exec/half.h"
#include "exec/safetensors.h"

namespace offstage::exec {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using workloads::ParameterTensor;

constexpr std::int64_t kBufferElements = std::int64_t{1} << 16;

const char* dtype_of(StoredType type) {
  switch (type) {
    case StoredType::f32:
      return "F32";
    case StoredType::f16:
      return "F16";
    case StoredType::bf16:
      break;
  }
  return "BF16";
}

// Tensors [begin, end) go into one file.
struct Part {
  std::size_t begin = 0, end = 0;
  std::string name;
};

std::vector<Part> deal_out(std::span<const ParameterTensor> tensors,
                           const SafetensorsOptions& options) {
  std::vector<Part> parts{{0, 0, {}}};
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t more = tensors[i].elements() * element_bytes(options.type);
    if (bytes > 0 && bytes + more > options.largest_file_bytes) {
      parts.push_back({i, i, {}});
      bytes = 0;
    }
    bytes += more;
    parts.back().end = i + 1;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].name = parts.size() == 1
                        ? "model.safetensors"
                        : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, parts.size());
  }
  return parts;
}

// The data begins at a multiple of 8, the header's end filled up with blanks, as the format's own
// writer does.
std::string header_of(std::span<const ParameterTensor> tensors, StoredType type) {
  json header{{"__metadata__", {{"format", "pt"}}}};
  std::int64_t offset = 0;
  for (const auto& tensor : tensors) {
    const std::int64_t end = offset + tensor.elements() * element_bytes(type);
    header[tensor.name] = {
        {"dtype", dtype_of(type)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  constexpr std::size_t kAlignment = 8;
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  return text;
}

void write_tensor(AtomicFile& file, std::int64_t elements, StoredType type,
                  const std::function<void(std::int64_t, std::span<float>)>& source) {
  std::vector<float> floats(static_cast<std::size_t>(std::min(elements, kBufferElements)));
  std::vector<std::uint16_t> halves(type == StoredType::f32 ? 0 : floats.size());
  for (std::int64_t first = 0; first < elements; first += kBufferElements) {
    const auto count = static_cast<std::size_t>(std::min(elements - first, kBufferElements));
    const auto part = std::span(floats).first(count);
    source(first, part);
    if (type == StoredType::f32) {
      file.write(std::as_bytes(part));
      continue;
    }
    std::ranges::transform(part, halves.begin(), type == StoredType::bf16 ? to_bf16 : to_f16);
    file.write(std::as_bytes(std::span(halves).first(count)));
  }
}

constexpr const char* kIndex = "model.safetensors.index.json";

void write_index(const std::string& folder, std::span<const ParameterTensor> tensors,
                 const std::vector<Part>& parts, StoredType type) {
  json map = json::object();
  std::int64_t bytes = 0;
  for (const Part& part : parts) {
    for (std::size_t i = part.begin; i < part.end; ++i) {
      map[tensors[i].name] = part.name;
      bytes += tensors[i].elements() * element_bytes(type);
    }
  }
  const json index{{"metadata", {{"total_size", bytes}}}, {"weight_map", map}};
  AtomicFile file((fs::path(folder) / kIndex).string());
  file.write(index.dump(1));
  file.commit();
}

}  // namespace

std::vector<std::string> write_safetensors(const std::string& folder,
                                           std::span<const ParameterTensor> tensors,
                                           const SafetensorsOptions& options,
                                           const TensorSource& source) {
  std::vector<std::string> written;
  const auto parts = deal_out(tensors, options);
  for (const Part& part : parts) {
    AtomicFile file((fs::path(folder) / part.name).string());
    const std::string header =
        header_of(tensors.subspan(part.begin, part.end - part.begin), options.type);
    const auto length = static_cast<std::uint64_t>(header.size());
    file.write(std::as_bytes(std::span(&length, 1)));
    file.write(header);
    for (std::size_t i = part.begin; i < part.end; ++i) {
      write_tensor(file, tensors[i].elements(), options.type,
                   [&](std::int64_t first, std::span<float> out) { source(i, first, out); });
    }
    file.commit();
    written.push_back(part.name);
  }
  if (parts.size() > 1) {
    write_index(folder, tensors, parts, options.type);
    written.emplace_back(kIndex);
  }
  return written;
}

}  // namespace offstage::exec
