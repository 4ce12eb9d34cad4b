#include "exec/scratch_file.h"

#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include "exec/arena.h"
#include "platform/error.h"

namespace offstage::exec::testing {
namespace {

namespace fs = std::filesystem;
using platform::Bytes;

// A folder of its own, gone afterwards.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / fmt::format("offstage-scratch-{}", getpid())) {
    fs::create_directories(path_);
  }
  ~Folder() { fs::remove_all(path_); }
  std::string path() const { return path_.string(); }
  bool empty() const { return fs::is_empty(path_); }

 private:
  fs::path path_;
};

void fill(const Buffer& buffer, int value) {
  std::memset(buffer.data(), value, static_cast<std::size_t>(buffer.size().value));
}

bool all_are(const Buffer& buffer, int value) {
  for (std::int64_t i = 0; i < buffer.size().value; ++i) {
    if (buffer.data()[i] != static_cast<std::byte>(value)) {
      return false;
    }
  }
  return true;
}

TEST_CASE("a scratch file gives back what was written, and zeros before", "[exec][unit]") {
  const Folder folder;
  // Less than a block, a block, and a block and a byte; an empty one in between.
  const std::vector<Bytes> sizes{{100}, {4096}, {0}, {4097}};
  ScratchFile file(folder.path(), "state", sizes);
  CAPTURE(file.direct());
  Arena arena("host0", platform::mebibytes(1));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Buffer buffer(arena, "slot", sizes[i]);
    fill(buffer, 9);
    file.read(i, buffer.data());
    CHECK(all_are(buffer, 0));
    fill(buffer, static_cast<int>(i) + 1);
    file.write(i, buffer.data());
  }
  for (std::size_t i = sizes.size(); i-- > 0;) {
    const Buffer buffer(arena, "slot", sizes[i]);
    file.read(i, buffer.data());
    CHECK(all_are(buffer, static_cast<int>(i) + 1));
  }
}

TEST_CASE("a scratch file leaves nothing behind, whatever becomes of the program", "[exec][unit]") {
  const Folder folder;
  const ScratchFile file(folder.path(), "state", std::vector<Bytes>{{4096}});
  CHECK(folder.empty());
  CHECK_THAT(file.path(), Catch::Contains(folder.path() + "/state"));
}

TEST_CASE("bytes that changed on the drive are an error that names the file", "[exec][unit]") {
  const Folder folder;
  ScratchFile file(folder.path(), "state", std::vector<Bytes>{{8192}, {8192}});
  Arena arena("host0", platform::mebibytes(1));
  const Buffer buffer(arena, "slot", {8192});
  fill(buffer, 1);
  file.write(0, buffer.data());
  file.write(1, buffer.data());
  // The file has no name any more: this program's own descriptor is the way to it.
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (fs::read_symlink(entry, error).string().starts_with(file.path())) {
      const int descriptor = open(entry.path().c_str(), O_WRONLY);
      REQUIRE(descriptor >= 0);
      // Byte 100 of the second buffer.
      REQUIRE(pwrite(descriptor, "x", 1, 8192 + 100) == 1);
      fsync(descriptor);
      close(descriptor);
    }
  }
  CHECK_NOTHROW(file.read(0, buffer.data()));
  try {
    file.read(1, buffer.data());
    FAIL("a changed byte went unnoticed");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::io);
    CHECK_THAT(error.what(), Catch::Contains(file.path()) && Catch::Contains("checksum"));
  }
}

TEST_CASE("a drive without room is an error before the training, not during it", "[exec][unit]") {
  const Folder folder;
  // A limit on the size of files plays the full drive.
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 65536, .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::optional<Error> thrown;
  try {
    const ScratchFile file(folder.path(), "state", std::vector<Bytes>{{65536}, {1}});
  } catch (const Error& error) {
    thrown = error;
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  REQUIRE(thrown.has_value());
  CHECK(thrown->code() == ErrorCode::io);
  // Two blocks of which the second is 65536 + 4096 bytes: 68 KiB.
  CHECK_THAT(thrown->what(), Catch::Contains(folder.path()) && Catch::Contains("68.0 KiB"));
  CHECK(folder.empty());
}

TEST_CASE("a folder that is none is refused", "[exec][unit]") {
  try {
    const ScratchFile file("no/such/folder", "state", std::vector<Bytes>{{1}});
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_input);
    CHECK_THAT(error.what(), Catch::Contains("no/such/folder"));
  }
}

}  // namespace
}  // namespace offstage::exec::testing
