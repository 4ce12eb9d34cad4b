#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "scheduler/train_config.h"

// Training text as tokens: raw bytes (vocabulary 256), 16-bit tokens as nanoGPT (no header) and
// llm.c (1024-byte header) write them, or 32-bit ones (llm.c's Llama 3 files). Files are mapped,
// not read, and which tokens a step sees depends on seed, step and sequence alone: a resumed run
// sees what an uninterrupted one would have.
//
//   const Dataset data({"a.txt", "b.txt"}, TokenType::automatic, 256);
//   const Sampler sampler(data, {.sequence_length = 128, .global_batch = 16, .seed = 1});
//   sampler.sequence(step, 3, inputs, targets);
namespace offstage::exec {

using scheduler::SampleOrder;
using scheduler::TokenType;

class TokenFile {
 public:
  // Errors: Error(io) when unreadable; Error(bad_input) for a header that is malformed or of
  // another token type, or a length that is no whole number of tokens.
  // vocab: every token is checked against it when read.
  TokenFile(const std::string& path, TokenType type, std::int64_t vocab);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }  // tokens
  // Tokens first ... first + out.size() - 1.
  // Errors: Error(bad_input) naming the offset of a token that is not below vocab.
  void read(std::int64_t first, std::span<std::int64_t> out) const;

 private:
  void read_format(TokenType type);
  std::string path_;
  std::int64_t vocab_ = 0;
  std::int64_t size_ = 0;
  std::int64_t token_bytes_ = 1;  // 1, 2 or 4
  std::size_t mapped_bytes_ = 0;
  const std::byte* mapping_ = nullptr;
  const std::byte* tokens_ = nullptr;
};

// The files of a training, or of its validation, in the order in which they are named.
class Dataset {
 public:
  // Errors: as TokenFile's.
  Dataset(const std::vector<std::string>& paths, TokenType type, std::int64_t vocab);

  const std::deque<TokenFile>& files() const { return files_; }
  std::int64_t vocab() const { return vocab_; }

 private:
  std::int64_t vocab_ = 0;
  std::deque<TokenFile> files_;  // a deque because a TokenFile can't move
};

struct SamplerOptions {
  std::int64_t sequence_length = 0;
  std::int64_t global_batch = 0;  // sequences of one step
  std::uint64_t seed = 0;
  SampleOrder order = SampleOrder::random;
};

// A sequence and the token after it lie in one file. random: every place of every file at which one
// may begin is as likely, whatever came before. sequential: the files one after the other, each in
// sequences that do not overlap, what is left at its end dropped; then from the first file again,
// in the same order (`seed` does not matter).
class Sampler {
 public:
  // Errors: Error(bad_input) when no file holds one sequence and the token after it.
  // Owner: the data outlive the sampler.
  Sampler(const Dataset& data, const SamplerOptions& options);

  struct Place {
    std::size_t file = 0;    // of the dataset's
    std::int64_t token = 0;  // the first one
  };
  // Where sequence `index` (0 ... global_batch - 1) of step `step` (from 0) begins.
  Place place(std::int64_t step, std::int64_t index) const;
  // The sequence there, and the same one token later. [sequence_length] each.
  void sequence(std::int64_t step, std::int64_t index, std::span<std::int64_t> inputs,
                std::span<std::int64_t> targets) const;

  // Places before they repeat: all that random draws from; one epoch of sequential.
  std::int64_t places() const { return first_place_.back(); }
  // Files too short for a sequence: no place is in them.
  std::vector<std::string> unused_files() const;

 private:
  const Dataset& data_;
  SamplerOptions options_;
  std::vector<std::int64_t> first_place_;  // number of a file's first place; one more at the end
};

// Entropy of single tokens in nats: the loss of a model that knows their frequencies and nothing
// else. Training must fall well below it. Reads all the data.
double unigram_entropy(const Dataset& data);

}  // namespace offstage::exec
