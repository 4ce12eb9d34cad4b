#include "exec/data.h"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include <catch2/catch.hpp>
#include <unistd.h>

#include "platform/error.h"

using namespace offstage::exec;
using offstage::Error;
using offstage::ErrorCode;

namespace {

// A file that lasts as long as the object.
class ScratchFile {
 public:
  ScratchFile(const std::string& name, const std::string& bytes)
      : path_(std::filesystem::temp_directory_path() /
              ("offstage_data_test_" + std::to_string(::getpid()) + "_" + name)) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~ScratchFile() { std::filesystem::remove(path_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string llmc_header(std::int32_t version, std::int32_t count) {
  std::vector<std::int32_t> header(256);
  header[0] = 20240520;
  header[1] = version;
  header[2] = count;
  return bytes_of(header);
}

std::vector<std::int64_t> all_tokens(const TokenFile& file) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(file.size()));
  file.read(0, tokens);
  return tokens;
}

ErrorCode code_of(const std::string& path, std::int64_t vocab) {
  try {
    const TokenFile file(path, vocab);
    all_tokens(file);
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("no error for " << path);
  return {};
}

}  // namespace

TEST_CASE("text is read as bytes", "[exec]") {
  const ScratchFile text("text.txt", "Az\xFF");
  const TokenFile file(text.path(), 256);
  CHECK(all_tokens(file) == std::vector<std::int64_t>{65, 122, 255});
}

TEST_CASE("token files are read with and without a header", "[exec]") {
  const std::string tokens = bytes_of(std::vector<std::uint16_t>{5, 50256, 0});
  const ScratchFile bare("bare.bin", tokens);
  const ScratchFile headed("headed.bin", llmc_header(1, 3) + tokens);
  const std::vector<std::int64_t> expected{5, 50256, 0};
  CHECK(all_tokens(TokenFile(bare.path(), 50257)) == expected);
  CHECK(all_tokens(TokenFile(headed.path(), 50257)) == expected);
}

TEST_CASE("bad token files are refused with their name and what is wrong", "[exec]") {
  const ScratchFile odd("odd.bin", "abc");
  const ScratchFile short_file("short.bin", llmc_header(1, 4) + "ab");
  const ScratchFile version("version.bin", llmc_header(7, 1) + "ab");
  const ScratchFile empty("empty.txt", "");
  CHECK(code_of(odd.path(), 256) == ErrorCode::bad_input);
  CHECK(code_of(short_file.path(), 256) == ErrorCode::bad_input);
  CHECK(code_of(version.path(), 256) == ErrorCode::bad_input);
  CHECK(code_of(empty.path(), 256) == ErrorCode::bad_input);
  CHECK(code_of("missing.txt", 256) == ErrorCode::io);
  CHECK(code_of(".", 256) == ErrorCode::io);
  CHECK_THROWS_WITH(TokenFile(short_file.path(), 256), Catch::Contains("short.bin") &&
                                                           Catch::Contains("4 tokens") &&
                                                           Catch::Contains("2 bytes"));
}

TEST_CASE("a token outside the vocabulary is named with its offset", "[exec]") {
  const ScratchFile text("high.txt", "abcx");
  const TokenFile file(text.path(), 'x');
  // 'x' is 120.
  CHECK_THROWS_WITH(all_tokens(file), Catch::Contains("token 120 at offset 3") &&
                                          Catch::Contains("vocabulary of 120"));
}

TEST_CASE("a file shorter than one sequence and its target is refused", "[exec]") {
  const ScratchFile text("few.txt", "abcd");
  const TokenFile file(text.path(), 256);
  CHECK_NOTHROW(Sampler(file, {.sequence_length = 3, .global_batch = 1}));
  CHECK_THROWS_WITH(Sampler(file, {.sequence_length = 4, .global_batch = 1}),
                    Catch::Contains("4 tokens") && Catch::Contains("need 5"));
}

TEST_CASE("targets are the inputs one token later", "[exec]") {
  std::string bytes;
  for (int i = 0; i < 100; ++i) {
    bytes += static_cast<char>(i);
  }
  const ScratchFile text("count.txt", bytes);
  const TokenFile file(text.path(), 256);
  const Sampler sampler(file, {.sequence_length = 8, .global_batch = 4, .seed = 1});
  std::vector<std::int64_t> inputs(8), targets(8);
  for (std::int64_t step = 0; step < 20; ++step) {
    sampler.sequence(step, 3, inputs, targets);
    CHECK(inputs[0] == sampler.position(step, 3));
    for (std::size_t i = 0; i < 8; ++i) {
      CHECK(inputs[i] == inputs[0] + static_cast<std::int64_t>(i));
      CHECK(targets[i] == inputs[i] + 1);
    }
  }
}

TEST_CASE("random positions depend on the seed and reach the whole file", "[exec]") {
  const ScratchFile text("places.txt", std::string(12, 'a'));
  const TokenFile file(text.path(), 256);
  // 12 tokens, sequences of 8 and one target more: places 0 ... 3.
  const Sampler one(file, {.sequence_length = 8, .global_batch = 16, .seed = 1});
  const Sampler two(file, {.sequence_length = 8, .global_batch = 16, .seed = 2});
  std::set<std::int64_t> places;
  int equal = 0;
  for (std::int64_t i = 0; i < 64; ++i) {
    places.insert(one.position(i / 16, i % 16));
    equal += one.position(i / 16, i % 16) == two.position(i / 16, i % 16) ? 1 : 0;
  }
  CHECK(places == std::set<std::int64_t>{0, 1, 2, 3});
  CHECK(equal < 64);
}

TEST_CASE("sequential positions walk through the file and begin again", "[exec]") {
  const ScratchFile text("walk.txt", std::string(13, 'a'));
  const TokenFile file(text.path(), 256);
  const Sampler sampler(
      file, {.sequence_length = 4, .global_batch = 2, .seed = 0, .order = SampleOrder::sequential});
  // (13 - 1) / 4 = 3 whole sequences with a target each: at 0, 4, 8.
  CHECK(sampler.position(0, 0) == 0);
  CHECK(sampler.position(0, 1) == 4);
  CHECK(sampler.position(1, 0) == 8);
  CHECK(sampler.position(1, 1) == 0);
}

TEST_CASE("the unigram entropy is that of the byte counts", "[exec]") {
  const ScratchFile text("entropy.txt", "aabc");
  // p = 1/2, 1/4, 1/4: 1/2 ln 2 + 2 x 1/4 ln 4 = 1.5 ln 2.
  CHECK(unigram_entropy(TokenFile(text.path(), 256)) == Approx(1.5 * std::log(2.0)));
}
