#include "exec/block_io.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <unistd.h>

#include "tests/support/temporary_path.h"

namespace offstage::exec::testing {
namespace {

class File {
 public:
  File()
      : path_(temporary_path("block-io").string()),
        descriptor_(open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600)) {}
  ~File() {
    close(descriptor_);
    unlink(path_.c_str());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  std::string path_;
  int descriptor_;
};

// Every 8 bytes tell their place.
std::vector<std::uint64_t> numbered(std::int64_t bytes) {
  std::vector<std::uint64_t> values(static_cast<std::size_t>(bytes / 8));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i * 0x9E3779B97F4A7C15U;
  return values;
}

std::byte* memory(std::vector<std::uint64_t>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

constexpr std::int64_t kMebi = std::int64_t{1} << 20;

TEST_CASE("what many requests write, one after the other read, and the other way round", "[exec]") {
  // Less than a request, one, several with a rest, more than are in flight at once (8).
  for (const std::int64_t size : {4096L, kMebi, 3 * kMebi + 4096, 20 * kMebi + 8192}) {
    const File file;
    auto out = numbered(size);
    constexpr std::int64_t kOffset = 8192;
    REQUIRE(move_blocks(Transfer::write, file.descriptor(), kOffset, memory(out), size) == 0);
    std::vector<std::uint64_t> in(out.size());
    REQUIRE(move_blocks_one_by_one(Transfer::read, file.descriptor(), kOffset, memory(in), size) ==
            0);
    CHECK(in == out);
    std::vector<std::uint64_t> again(out.size());
    REQUIRE(move_blocks(Transfer::read, file.descriptor(), kOffset, memory(again), size) == 0);
    CHECK(again == out);
  }
}

TEST_CASE("a file that ends early and a descriptor that can't be used are errors", "[exec]") {
  const File file;
  auto values = numbered(4 * kMebi);
  REQUIRE(move_blocks(Transfer::write, file.descriptor(), 0, memory(values), 2 * kMebi) == 0);
  CHECK(move_blocks(Transfer::read, file.descriptor(), 0, memory(values), 4 * kMebi) == ENODATA);
  CHECK(move_blocks(Transfer::read, -1, 0, memory(values), 4 * kMebi) == EBADF);
}

}  // namespace
}  // namespace offstage::exec::testing
