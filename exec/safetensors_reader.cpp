#include <algorithm>
#include <bit>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "exec/bf16.h"
#include "exec/half.h"
#include "exec/safetensors.h"
#include "platform/error.h"

namespace offstage::exec {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Source: huggingface/safetensors, MAX_HEADER_SIZE.
constexpr std::uint64_t kLargestHeader = 100'000'000;
constexpr std::uint64_t kLengthBytes = 8;
constexpr std::size_t kBufferElements = std::size_t{1} << 16;

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

Error malformed(const std::string& path, const std::string& message) {
  return {ErrorCode::bad_input, fmt::format("{}: is no safetensors file: {}", path, message)};
}

std::optional<StoredType> type_of(const std::string& dtype) {
  if (dtype == "F32") return StoredType::f32;
  if (dtype == "F16") return StoredType::f16;
  if (dtype == "BF16") return StoredType::bf16;
  return std::nullopt;
}

std::string read_text(const OpenFile& file, std::uint64_t offset, std::uint64_t length) {
  std::string text(length, '\0');
  file.read(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

Extent read_extent(const std::string& path, const std::string& name, const json& entry,
                   std::uint64_t data_bytes) {
  const auto& offsets = entry.at("data_offsets");
  const Extent extent{offsets.at(0).get<std::uint64_t>(), offsets.at(1).get<std::uint64_t>()};
  if (extent.begin > extent.end || extent.end > data_bytes) {
    throw malformed(path, fmt::format("'{}' lies at [{}, {}) of {} bytes of data", name,
                                      extent.begin, extent.end, data_bytes));
  }
  return extent;
}

json parse(const std::string& path, const std::string& text) {
  try {
    json parsed = json::parse(text);
    if (!parsed.is_object()) throw malformed(path, "its header is no JSON object");
    return parsed;
  } catch (const json::exception& error) {
    throw malformed(path, error.what());
  }
}

}  // namespace

std::int64_t StoredTensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

SafetensorsReader::SafetensorsReader(const std::string& path) : path_(path) {
  const fs::path index = fs::path(path) / "model.safetensors.index.json";
  if (fs::is_directory(path) && fs::exists(index)) {
    open_index(index.string());
  } else if (fs::is_directory(path)) {
    const fs::path single = fs::path(path) / "model.safetensors";
    if (!fs::exists(single)) {
      throw Error(ErrorCode::bad_input,
                  fmt::format("{}: has neither {} nor {}; offstage reads no other formats, such as "
                              "pytorch_model.bin",
                              path, single.filename().string(), index.filename().string()));
    }
    open_file(single.string());
  } else if (path.ends_with(".json")) {
    open_index(path);
  } else {
    open_file(path);
  }
}

void SafetensorsReader::open_index(const std::string& path) {
  const OpenFile file(path);
  const json index = parse(path, read_text(file, 0, file.size()));
  std::set<std::string> names;
  try {
    for (const auto& [tensor, holder] : index.at("weight_map").items()) {
      const auto name = holder.get<std::string>();
      if (name.find('/') != std::string::npos) {
        throw malformed(path, fmt::format("'{}' lies in another folder", name));
      }
      names.insert(name);
    }
  } catch (const json::exception& error) {
    throw malformed(path, error.what());
  }
  for (const auto& name : names) open_file((fs::path(path).parent_path() / name).string());
}

void SafetensorsReader::open_file(const std::string& path) {
  const OpenFile& file = files_.emplace_back(path);
  std::uint64_t length = 0;
  if (file.size() < kLengthBytes) throw malformed(path, "it is shorter than 8 bytes");
  file.read(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kLargestHeader || length > file.size() - kLengthBytes) {
    throw malformed(path, fmt::format("its header would be {} bytes long", length));
  }
  const json header = parse(path, read_text(file, kLengthBytes, length));
  const std::uint64_t data = kLengthBytes + length;
  std::vector<Extent> extents;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      extents.push_back(add_tensor(name, entry, data));
    } catch (const json::exception& error) {
      throw malformed(path, fmt::format("'{}': {}", name, error.what()));
    }
  }
  std::ranges::sort(extents, {}, &Extent::begin);
  for (std::size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].begin < extents[i - 1].end) throw malformed(path, "two tensors overlap");
  }
}

// Of the file opened last, whose data begins at `data`.
Extent SafetensorsReader::add_tensor(const std::string& name, const json& entry,
                                     std::uint64_t data) {
  const OpenFile& file = files_.back();
  const Extent extent = read_extent(file.path(), name, entry, file.size() - data);
  Entry made{{name, StoredType::f32, entry.at("shape").get<std::vector<std::int64_t>>(),
              files_.size() - 1, data + extent.begin},
             entry.at("dtype").get<std::string>()};
  if (const auto type = type_of(made.dtype)) {
    made.tensor.type = *type;
    // No tensor has more elements than its file has bytes: beyond that a product might overflow.
    std::uint64_t elements = 1;
    for (const std::int64_t size : made.tensor.shape) {
      if (size < 0 || (size > 0 && elements > file.size() / static_cast<std::uint64_t>(size))) {
        throw malformed(file.path(), fmt::format("'{}' has a shape of {}", name,
                                                 fmt::join(made.tensor.shape, " x ")));
      }
      elements *= static_cast<std::uint64_t>(size);
    }
    const std::uint64_t wanted = elements * static_cast<std::uint64_t>(element_bytes(*type));
    if (wanted != extent.end - extent.begin) {
      throw malformed(file.path(), fmt::format("'{}' has {} bytes, its shape needs {}", name,
                                               extent.end - extent.begin, wanted));
    }
  }
  if (!tensors_.emplace(name, std::move(made)).second) {
    throw malformed(file.path(), fmt::format("'{}' is in another file too", name));
  }
  return extent;
}

std::vector<std::string> SafetensorsReader::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : tensors_) names.push_back(name);
  return names;
}

const StoredTensor& SafetensorsReader::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    const auto near = nearest_match(name, names());
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: has no tensor '{}'{}", path_, name,
                            near ? fmt::format(", the nearest is '{}'", *near) : std::string()));
  }
  if (!type_of(found->second.dtype)) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: '{}' is stored as {}; offstage reads F32, F16 and BF16", path_,
                            name, found->second.dtype));
  }
  return found->second.tensor;
}

void SafetensorsReader::read(const StoredTensor& tensor, std::int64_t first,
                             std::span<float> out) const {
  OFFSTAGE_CHECK(first >= 0 && first + static_cast<std::int64_t>(out.size()) <= tensor.elements(),
                 "a read beyond the end of " + tensor.name);
  const OpenFile& file = files_[tensor.file];
  const auto size = static_cast<std::uint64_t>(element_bytes(tensor.type));
  const std::uint64_t begin = tensor.begin + static_cast<std::uint64_t>(first) * size;
  if (tensor.type == StoredType::f32) {
    file.read(begin, std::as_writable_bytes(out));
    return;
  }
  std::vector<std::uint16_t> buffer(std::min(kBufferElements, out.size()));
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t count = std::min(buffer.size(), out.size() - done);
    file.read(begin + done * size, std::as_writable_bytes(std::span(buffer).first(count)));
    std::transform(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(count),
                   out.begin() + static_cast<std::ptrdiff_t>(done),
                   tensor.type == StoredType::bf16 ? from_bf16 : from_f16);
    done += count;
  }
}

}  // namespace offstage::exec
