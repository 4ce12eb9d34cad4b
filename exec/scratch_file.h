#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "platform/units.h"

// A file on a drive that holds buffers of fixed size while a training runs, and is gone when the
// program is, however that ends: its name is removed as soon as it is open.
//
//   const ScratchFile file("fast", "offstage-gpu0", {{Bytes{4000}, Bytes{8000}}});
//   file.write(1, buffer);  file.read(1, buffer);  // see tests/exec/scratch_file_test.cpp
namespace offstage::exec {

// Note [Blocks of a page]
// Buffers begin at multiples of kBlock in the file and are moved in whole blocks, past the page
// cache (O_DIRECT) where the file system allows. Memory passed in must begin at a page and be
// mapped to the end of its last one, as a Buffer's is (arena.h).
//
// Every buffer has a checksum (XXH3, 64 bits), taken when it is written and compared when it is
// read. At first all bytes are 0.
//
// Thread: calls for different buffers may run side by side; calls for one must be ordered.
class ScratchFile {
 public:
  static constexpr std::int64_t kBlock = 4096;

  // Sets the room for everything aside.
  // Errors: Error(bad_input) when `directory` is no folder in which files can be made; Error(io)
  // when the drive has no room.
  ScratchFile(const std::string& directory, const std::string& name,
              std::span<const platform::Bytes> sizes);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  // Errors of both: Error(io) naming the file when the drive fails; read also when the bytes are
  // not those that were written.
  void write(std::size_t buffer, const std::byte* from);
  void read(std::size_t buffer, std::byte* to) const;

  // What errors call it: the directory and the name the file had.
  const std::string& path() const { return path_; }
  // Whether reads and writes go past the page cache.
  bool direct() const { return direct_; }

 private:
  struct Stored {
    std::int64_t offset = 0;
    std::int64_t size = 0;
    std::uint64_t checksum = 0;
  };

  void open(const std::string& directory, const std::string& name);
  void allocate(std::int64_t total);
  void go_direct();
  [[noreturn]] void fail(const std::string& doing, const Stored& at, int error) const;

  std::string path_;
  int descriptor_ = -1;
  bool direct_ = false;
  std::vector<Stored> buffers_;
};

}  // namespace offstage::exec
