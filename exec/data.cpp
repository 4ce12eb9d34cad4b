#include "exec/data.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include "exec/open_file.h"
#include "platform/error.h"

namespace offstage::exec {
namespace {

// The headers of llm.c's token files: 256 32-bit words, of which the first three are used: which
// format, its version, the number of tokens.
// Source: karpathy/llm.c, dev/data/data_common.py, HEADERS_INFO and write_datafile.
constexpr std::size_t kHeaderBytes = 1024;
struct HeaderFormat {
  std::int32_t magic = 0, version = 0;
  std::int64_t token_bytes = 0;
};
constexpr std::array<HeaderFormat, 2> kHeaders{{{20240520, 1, 2}, {20240801, 7, 4}}};

std::size_t size_of(const OpenFile& file) {
  if (file.size() == 0) {
    throw Error(ErrorCode::bad_input, fmt::format("{}: is empty; it must hold text", file.path()));
  }
  return file.size();
}

std::int64_t bytes_of(TokenType type, const std::string& path) {
  switch (type) {
    case TokenType::bytes:
      return 1;
    case TokenType::uint16:
      return 2;
    case TokenType::uint32:
      return 4;
    case TokenType::automatic:
      break;
  }
  return path.ends_with(".bin") ? 2 : 1;
}

// Tokens promised by an llm.c header; the file's length must agree.
std::int64_t check_header(const std::string& path, const HeaderFormat& format, std::int32_t version,
                          std::int32_t count, std::size_t bytes) {
  if (version != format.version) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: llm.c header {} has version {}; only {} ({}-bit tokens) is read",
                            path, format.magic, version, format.version, 8 * format.token_bytes));
  }
  const auto token_bytes = static_cast<std::size_t>(format.token_bytes);
  if (count < 0 || bytes != kHeaderBytes + token_bytes * static_cast<std::size_t>(count)) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: its header says {} tokens of {} bytes, {} bytes follow it", path,
                            count, token_bytes, bytes - kHeaderBytes));
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

TokenFile::TokenFile(const std::string& path, TokenType type, std::int64_t vocab)
    : path_(path), vocab_(vocab) {
  const OpenFile file(path);
  const std::size_t bytes = size_of(file);
  void* mapping = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (mapping == MAP_FAILED) {
    throw Error(ErrorCode::io, fmt::format("{}: can't be mapped: {}", path, std::strerror(errno)));
  }
  mapping_ = static_cast<const std::byte*>(mapping);
  mapped_bytes_ = bytes;
  tokens_ = mapping_;
  try {
    read_format(type);
  } catch (...) {
    munmap(mapping, bytes);  // no destructor runs for an object that was never made
    throw;
  }
}

void TokenFile::read_format(TokenType type) {
  token_bytes_ = bytes_of(type, path_);
  const auto size = static_cast<std::int64_t>(mapped_bytes_);
  std::int32_t header[3] = {};
  if (token_bytes_ > 1 && mapped_bytes_ >= kHeaderBytes) {
    std::memcpy(header, mapping_, sizeof header);
  }
  const auto* const format = std::ranges::find(kHeaders, header[0], &HeaderFormat::magic);
  if (format != kHeaders.end()) {
    if (type != TokenType::automatic && format->token_bytes != token_bytes_) {
      throw Error(ErrorCode::bad_input,
                  fmt::format("{}: its header says {}-bit tokens, train.token_type uint{}; leave "
                              "the latter out",
                              path_, 8 * format->token_bytes, 8 * token_bytes_));
    }
    token_bytes_ = format->token_bytes;
    size_ = check_header(path_, *format, header[1], header[2], mapped_bytes_);
    tokens_ = mapping_ + kHeaderBytes;
    return;
  }
  if (size % token_bytes_ != 0) {
    throw Error(ErrorCode::bad_input, fmt::format("{}: {} bytes are no whole number of {}-bit "
                                                  "tokens",
                                                  path_, size, 8 * token_bytes_));
  }
  size_ = size / token_bytes_;
}

TokenFile::~TokenFile() { munmap(const_cast<std::byte*>(mapping_), mapped_bytes_); }

void TokenFile::read(std::int64_t first, std::span<std::int64_t> out) const {
  const std::int64_t count = static_cast<std::int64_t>(out.size());
  OFFSTAGE_CHECK(first >= 0 && first + count <= size_,
                 fmt::format("tokens {} to {} of {}", first, first + count, size_));
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t token = 0;  // the format is little-endian, as every machine offstage runs on
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

Dataset::Dataset(const std::vector<std::string>& paths, TokenType type, std::int64_t vocab)
    : vocab_(vocab) {
  OFFSTAGE_CHECK(!paths.empty(), "a dataset without files");
  for (const std::string& path : paths) files_.emplace_back(path, type, vocab);
}

Sampler::Sampler(const Dataset& data, const SamplerOptions& options)
    : data_(data), options_(options), first_place_{0} {
  const std::int64_t length = options.sequence_length;
  std::int64_t longest = 0;
  for (const TokenFile& file : data.files()) {
    const std::int64_t places =
        options.order == SampleOrder::random ? file.size() - length : (file.size() - 1) / length;
    first_place_.push_back(first_place_.back() + std::max<std::int64_t>(places, 0));
    longest = std::max(longest, file.size());
  }
  if (places() == 0) {
    const bool one = data.files().size() == 1;
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: {}{} tokens; one sequence of {} and the token after it need {}",
                            fmt::join(unused_files(), ", "), one ? "" : "none has more than ",
                            longest, length, length + 1));
  }
}

std::vector<std::string> Sampler::unused_files() const {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < data_.files().size(); ++i) {
    if (first_place_[i] == first_place_[i + 1]) paths.push_back(data_.files()[i].path());
  }
  return paths;
}

Sampler::Place Sampler::place(std::int64_t step, std::int64_t index) const {
  const auto number = static_cast<std::uint64_t>(step * options_.global_batch + index);
  const bool random = options_.order == SampleOrder::random;
  const std::uint64_t drawn = random ? mixed(mixed(options_.seed) ^ number) : number;
  const auto place = static_cast<std::int64_t>(drawn % static_cast<std::uint64_t>(places()));
  const auto after = std::ranges::upper_bound(first_place_, place);
  const auto file = static_cast<std::size_t>(after - first_place_.begin()) - 1;
  const std::int64_t within = place - first_place_[file];
  return {file, random ? within : within * options_.sequence_length};
}

void Sampler::sequence(std::int64_t step, std::int64_t index, std::span<std::int64_t> inputs,
                       std::span<std::int64_t> targets) const {
  const Place begin = place(step, index);
  const TokenFile& file = data_.files()[begin.file];
  file.read(begin.token, inputs);
  file.read(begin.token + 1, targets);
}

double unigram_entropy(const Dataset& data) {
  constexpr std::int64_t kChunk = 1 << 16;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(data.vocab()));
  std::vector<std::int64_t> chunk;
  std::int64_t all = 0;
  for (const TokenFile& file : data.files()) {
    for (std::int64_t begin = 0; begin < file.size(); begin += kChunk) {
      chunk.resize(static_cast<std::size_t>(std::min(kChunk, file.size() - begin)));
      file.read(begin, chunk);
      for (const std::int64_t token : chunk) {
        ++counts[static_cast<std::size_t>(token)];
      }
    }
    all += file.size();
  }
  double entropy = 0.0;
  for (const std::int64_t count : counts) {
    if (count > 0) {
      const double p = static_cast<double>(count) / static_cast<double>(all);
      entropy -= p * std::log(p);
    }
  }
  return entropy;
}

}  // namespace offstage::exec
