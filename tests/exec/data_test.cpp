#include "exec/data.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/error.h"
#include "tests/support/temporary_path.h"

using namespace offstage::exec;
using offstage::Error;
using offstage::ErrorCode;

namespace {

// A file that lasts as long as the object.
class ScratchFile {
 public:
  ScratchFile(const std::string& name, const std::string& bytes)
      : path_(offstage::temporary_path(name)) {
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

std::string llmc_header(std::int32_t version, std::int32_t count, std::int32_t magic = 20240520) {
  std::vector<std::int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return bytes_of(header);
}

std::vector<std::int64_t> all_tokens(const TokenFile& file) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(file.size()));
  file.read(0, tokens);
  return tokens;
}

std::vector<std::int64_t> all_tokens(const ScratchFile& file, TokenType type, std::int64_t vocab) {
  return all_tokens(TokenFile(file.path(), type, vocab));
}

ErrorCode code_of(const std::string& path, std::int64_t vocab) {
  try {
    const TokenFile file(path, TokenType::automatic, vocab);
    all_tokens(file);
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("no error for " << path);
  return {};
}

Dataset bytes_in(const std::vector<std::string>& paths) {
  return {paths, TokenType::automatic, 256};
}

}  // namespace

TEST_CASE("text is read as bytes", "[exec]") {
  const ScratchFile text("text.txt", "Az\xFF");
  CHECK(all_tokens(text, TokenType::automatic, 256) == std::vector<std::int64_t>{65, 122, 255});
}

TEST_CASE("token files are read with and without a header", "[exec]") {
  const std::string tokens = bytes_of(std::vector<std::uint16_t>{5, 50256, 0});
  const ScratchFile bare("bare.bin", tokens);
  const ScratchFile headed("headed.bin", llmc_header(1, 3) + tokens);
  const std::vector<std::int64_t> expected{5, 50256, 0};
  CHECK(all_tokens(bare, TokenType::automatic, 50257) == expected);
  CHECK(all_tokens(headed, TokenType::automatic, 50257) == expected);
  CHECK(all_tokens(headed, TokenType::uint16, 50257) == expected);
}

TEST_CASE("tokens of 32 bits are read with llm.c's header for them, or when asked for", "[exec]") {
  const std::string tokens = bytes_of(std::vector<std::uint32_t>{5, 128255, 0});
  const ScratchFile bare("bare32.bin", tokens);
  const ScratchFile headed("headed32.bin", llmc_header(7, 3, 20240801) + tokens);
  const std::vector<std::int64_t> expected{5, 128255, 0};
  CHECK(all_tokens(headed, TokenType::automatic, 128256) == expected);
  CHECK(all_tokens(headed, TokenType::uint32, 128256) == expected);
  CHECK(all_tokens(bare, TokenType::uint32, 128256) == expected);
  // 128255 = 1 x 65536 + 62719: what 16-bit tokens would be.
  CHECK(all_tokens(bare, TokenType::automatic, 65536) ==
        std::vector<std::int64_t>{5, 0, 62719, 1, 0, 0});
  CHECK_THROWS_WITH(TokenFile(headed.path(), TokenType::uint16, 128256),
                    Catch::Contains("32-bit") && Catch::Contains("uint16"));
}

TEST_CASE("the token type, where it is given, counts more than the file's name", "[exec]") {
  const ScratchFile bytes("bytes.bin", "abc");
  const ScratchFile words("words.dat", bytes_of(std::vector<std::uint16_t>{300, 7}));
  CHECK(all_tokens(bytes, TokenType::bytes, 256) == std::vector<std::int64_t>{97, 98, 99});
  CHECK(all_tokens(words, TokenType::uint16, 301) == std::vector<std::int64_t>{300, 7});
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
  CHECK_THROWS_WITH(TokenFile(short_file.path(), TokenType::automatic, 256),
                    Catch::Contains("short.bin") && Catch::Contains("4 tokens") &&
                        Catch::Contains("2 bytes follow"));
}

TEST_CASE("a token outside the vocabulary is named with its offset", "[exec]") {
  const ScratchFile text("high.txt", "abcx");
  // 'x' is 120.
  CHECK_THROWS_WITH(all_tokens(text, TokenType::automatic, 'x'),
                    Catch::Contains("high.txt") && Catch::Contains("token 120 at offset 3") &&
                        Catch::Contains("vocabulary of 120"));
}

TEST_CASE("files shorter than one sequence and its target are left out, or refused", "[exec]") {
  const ScratchFile four("four.txt", "abcd"), three("three.txt", "abc");
  const Dataset both = bytes_in({three.path(), four.path()});
  const Sampler sampler(both, {.sequence_length = 3, .global_batch = 1});
  CHECK(sampler.unused_files() == std::vector<std::string>{three.path()});
  CHECK(sampler.place(0, 0).file == 1);
  CHECK_THROWS_WITH(Sampler(both, {.sequence_length = 4, .global_batch = 1}),
                    Catch::Contains("four.txt") && Catch::Contains("three.txt") &&
                        Catch::Contains("more than 4 tokens") && Catch::Contains("need 5"));
}

TEST_CASE("targets are the inputs one token later", "[exec]") {
  std::string bytes;
  for (int i = 0; i < 100; ++i) {
    bytes += static_cast<char>(i);
  }
  const ScratchFile text("count.txt", bytes);
  const Dataset data = bytes_in({text.path()});
  const Sampler sampler(data, {.sequence_length = 8, .global_batch = 4, .seed = 1});
  std::vector<std::int64_t> inputs(8), targets(8);
  for (std::int64_t step = 0; step < 20; ++step) {
    sampler.sequence(step, 3, inputs, targets);
    CHECK(inputs[0] == sampler.place(step, 3).token);
    for (std::size_t i = 0; i < 8; ++i) {
      CHECK(inputs[i] == inputs[0] + static_cast<std::int64_t>(i));
      CHECK(targets[i] == inputs[i] + 1);
    }
  }
}

TEST_CASE("random places depend on the seed and are every place of every file", "[exec]") {
  // Sequences of 8 and one target more: 12 tokens have places 0 ... 3, 10 tokens 0 and 1.
  const ScratchFile first("places.txt", std::string(12, 'a'));
  const ScratchFile second("more.txt", std::string(10, 'b'));
  const Dataset data = bytes_in({first.path(), second.path()});
  const Sampler one(data, {.sequence_length = 8, .global_batch = 16, .seed = 1});
  const Sampler two(data, {.sequence_length = 8, .global_batch = 16, .seed = 2});
  CHECK(one.places() == 6);
  std::map<std::pair<std::size_t, std::int64_t>, int> drawn;
  int equal = 0;
  for (std::int64_t i = 0; i < 6000; ++i) {
    const auto place = one.place(i / 16, i % 16), other = two.place(i / 16, i % 16);
    ++drawn[{place.file, place.token}];
    equal += place.file == other.file && place.token == other.token ? 1 : 0;
  }
  CHECK(drawn.size() == 6);
  // 1000 each, if all are as likely; the standard deviation is sqrt(6000 x 1/6 x 5/6) = 29, so
  // that 150 is five of them.
  for (const auto& [place, count] : drawn) {
    CHECK(std::abs(count - 1000) < 150);
  }
  CHECK(equal < 2000);
}

TEST_CASE("sequential places walk through all files and begin again", "[exec]") {
  const ScratchFile first("walk.txt", "abcdefghijklm"), second("on.txt", "ABCDEFGH");
  const Dataset data = bytes_in({first.path(), second.path()});
  const Sampler sampler(
      data, {.sequence_length = 4, .global_batch = 2, .seed = 0, .order = SampleOrder::sequential});
  // (13 - 1) / 4 = 3 whole sequences with a target each: at 0, 4, 8. (8 - 1) / 4 = 1: at 0. No
  // sequence crosses from one file into the next.
  CHECK(sampler.places() == 4);
  std::string starts;
  std::vector<std::int64_t> inputs(4), targets(4);
  for (std::int64_t i = 0; i < 6; ++i) {
    sampler.sequence(i / 2, i % 2, inputs, targets);
    starts += static_cast<char>(inputs.front());
  }
  CHECK(starts == "aeiAae");
}

TEST_CASE("the unigram entropy is that of the byte counts of all files", "[exec]") {
  const ScratchFile first("entropy.txt", "aab"), second("entropy2.txt", "c");
  // p = 1/2, 1/4, 1/4: 1/2 ln 2 + 2 x 1/4 ln 4 = 1.5 ln 2.
  CHECK(unigram_entropy(bytes_in({first.path(), second.path()})) == Approx(1.5 * std::log(2.0)));
}
