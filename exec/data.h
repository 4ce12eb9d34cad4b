#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "scheduler/train_config.h"

// Training text as tokens: raw bytes (vocabulary 256), or a .bin file of 16-bit tokens as nanoGPT
// (no header) and llm.c (1024-byte header) write them. The file is mapped, not read, and which
// tokens a step sees depends on seed, step and sequence alone: a resumed run sees what an
// uninterrupted one would have.
//
//   const TokenFile file("text.txt", 256);
//   const Sampler sampler(file, {.sequence_length = 128, .global_batch = 16, .seed = 1});
//   sampler.sequence(step, 3, inputs, targets);
namespace offstage::exec {

class TokenFile {
 public:
  // Errors: Error(io) when unreadable; Error(bad_input) for a malformed header or odd length.
  // vocab: every token is checked against it when read.
  TokenFile(const std::string& path, std::int64_t vocab);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }
  // Tokens first ... first + out.size() - 1.
  // Errors: Error(bad_input) naming the offset of a token that is not below vocab.
  void read(std::int64_t first, std::span<std::int64_t> out) const;

 private:
  void read_format();  // of a .bin file
  std::string path_;
  std::int64_t vocab_ = 0;
  std::int64_t size_ = 0;         // tokens
  std::int64_t token_bytes_ = 1;  // 1 or 2
  std::size_t mapped_bytes_ = 0;
  const std::byte* mapping_ = nullptr;
  const std::byte* tokens_ = nullptr;
};

using scheduler::SampleOrder;

struct SamplerOptions {
  std::int64_t sequence_length = 0;
  std::int64_t global_batch = 0;  // sequences of one step
  std::uint64_t seed = 0;
  SampleOrder order = SampleOrder::random;
};

class Sampler {
 public:
  // Errors: Error(bad_input) when the file is shorter than one sequence and the token after it.
  // Owner: the file outlives the sampler.
  Sampler(const TokenFile& file, const SamplerOptions& options);

  // Where in the file sequence `index` (0 ... global_batch - 1) of step `step` (from 0) begins.
  std::int64_t position(std::int64_t step, std::int64_t index) const;
  // The sequence there, and the same one token later. [sequence_length] each.
  void sequence(std::int64_t step, std::int64_t index, std::span<std::int64_t> inputs,
                std::span<std::int64_t> targets) const;

 private:
  const TokenFile& file_;
  SamplerOptions options_;
};

// Entropy of the file's single tokens in nats: the loss of a model that knows their frequencies and
// nothing else. Training must fall well below it.
double unigram_entropy(const TokenFile& file);

}  // namespace offstage::exec
