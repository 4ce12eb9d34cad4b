#include "exec/data.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>

#include "exec/open_file.h"
#include "platform/error.h"

namespace offstage::exec {
namespace {

// The header of llm.c's token files: 256 32-bit words, of which the first three are used.
// Source: karpathy/llm.c, dev/data/data_common.py, write_datafile.
constexpr std::size_t kHeaderBytes = 1024;
constexpr std::int32_t kHeaderMagic = 20240520;
constexpr std::int32_t kHeaderVersion = 1;  // 16-bit tokens

std::size_t size_of(const OpenFile& file) {
  if (file.size() == 0) {
    throw Error(ErrorCode::bad_input, fmt::format("{}: is empty; it must hold text", file.path()));
  }
  return file.size();
}

// Tokens promised by an llm.c header; the file's length must agree.
std::int64_t check_header(const std::string& path, std::int32_t version, std::int32_t count,
                          std::size_t bytes) {
  if (version != kHeaderVersion) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: llm.c header version {}, only {} (16-bit tokens) is read", path,
                            version, kHeaderVersion));
  }
  if (count < 0 || bytes != kHeaderBytes + 2 * static_cast<std::size_t>(count)) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: its header says {} tokens, {} bytes follow it", path, count,
                            bytes - kHeaderBytes));
  }
  return count;
}

// A well-mixed 64-bit number for each input. Source: SplitMix64, Steele, Lea, Flood, OOPSLA 2014.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

TokenFile::TokenFile(const std::string& path, std::int64_t vocab) : path_(path), vocab_(vocab) {
  const OpenFile file(path);
  const std::size_t bytes = size_of(file);
  void* mapping = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (mapping == MAP_FAILED) {
    throw Error(ErrorCode::io, fmt::format("{}: can't be mapped: {}", path, std::strerror(errno)));
  }
  mapping_ = static_cast<const std::byte*>(mapping);
  mapped_bytes_ = bytes;
  tokens_ = mapping_;
  size_ = static_cast<std::int64_t>(bytes);
  try {
    if (path.ends_with(".bin")) {
      read_format();
    }
  } catch (...) {
    munmap(mapping, bytes);  // no destructor runs for an object that was never made
    throw;
  }
}

void TokenFile::read_format() {
  token_bytes_ = 2;
  std::int32_t header[3] = {};
  if (mapped_bytes_ >= kHeaderBytes) {
    std::memcpy(header, mapping_, sizeof header);
  }
  if (header[0] == kHeaderMagic) {
    size_ = check_header(path_, header[1], header[2], mapped_bytes_);
    tokens_ = mapping_ + kHeaderBytes;
    return;
  }
  if (mapped_bytes_ % 2 != 0) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format("{}: {} bytes are no whole number of 16-bit tokens", path_, mapped_bytes_));
  }
  size_ = static_cast<std::int64_t>(mapped_bytes_ / 2);
}

TokenFile::~TokenFile() { munmap(const_cast<std::byte*>(mapping_), mapped_bytes_); }

void TokenFile::read(std::int64_t first, std::span<std::int64_t> out) const {
  const std::int64_t count = static_cast<std::int64_t>(out.size());
  OFFSTAGE_CHECK(first >= 0 && first + count <= size_,
                 fmt::format("tokens {} to {} of {}", first, first + count, size_));
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t token = 0;  // the format is little-endian, as every machine offstage runs on
    std::memcpy(&token, tokens_ + (first + i) * token_bytes_,
                static_cast<std::size_t>(token_bytes_));
    if (token >= vocab_) {
      throw Error(ErrorCode::bad_input,
                  fmt::format("{}: token {} at offset {} is outside the model's vocabulary of {}",
                              path_, token, first + i, vocab_));
    }
    out[static_cast<std::size_t>(i)] = token;
  }
}

Sampler::Sampler(const TokenFile& file, const SamplerOptions& options)
    : file_(file), options_(options) {
  if (file.size() < options.sequence_length + 1) {
    throw Error(
        ErrorCode::bad_input,
        fmt::format("{}: {} tokens; one sequence of {} and the token after it need {}", file.path(),
                    file.size(), options.sequence_length, options.sequence_length + 1));
  }
}

std::int64_t Sampler::position(std::int64_t step, std::int64_t index) const {
  const auto number = static_cast<std::uint64_t>(step * options_.global_batch + index);
  if (options_.order == SampleOrder::random) {
    const auto places = static_cast<std::uint64_t>(file_.size() - options_.sequence_length);
    return static_cast<std::int64_t>(mixed(mixed(options_.seed) ^ number) % places);
  }
  const auto whole = static_cast<std::uint64_t>((file_.size() - 1) / options_.sequence_length);
  return static_cast<std::int64_t>(number % whole) * options_.sequence_length;
}

void Sampler::sequence(std::int64_t step, std::int64_t index, std::span<std::int64_t> inputs,
                       std::span<std::int64_t> targets) const {
  const std::int64_t begin = position(step, index);
  file_.read(begin, inputs);
  file_.read(begin + 1, targets);
}

double unigram_entropy(const TokenFile& file) {
  constexpr std::int64_t kChunk = 1 << 16;
  std::vector<std::int64_t> counts(1 << 16);
  std::vector<std::int64_t> chunk;
  for (std::int64_t begin = 0; begin < file.size(); begin += kChunk) {
    chunk.resize(static_cast<std::size_t>(std::min(kChunk, file.size() - begin)));
    file.read(begin, chunk);
    for (const std::int64_t token : chunk) {
      ++counts[static_cast<std::size_t>(token)];
    }
  }
  double entropy = 0.0;
  for (const std::int64_t count : counts) {
    if (count > 0) {
      const double p = static_cast<double>(count) / static_cast<double>(file.size());
      entropy -= p * std::log(p);
    }
  }
  return entropy;
}

}  // namespace offstage::exec
