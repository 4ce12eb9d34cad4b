#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

// A regular file opened for reading, closed at the end of its scope.
namespace offstage::exec {

class OpenFile {
 public:
  // Errors: Error(io) naming the file when it can't be opened or is no regular file.
  explicit OpenFile(const std::string& path);
  ~OpenFile();
  OpenFile(OpenFile&& other) noexcept
      : path_(std::move(other.path_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        size_(other.size_) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  std::uint64_t size() const { return size_; }  // bytes

  // Bytes offset ... offset + out.size() - 1. Thread: several may read at once.
  // Errors: Error(io) naming the file, also when it ends before.
  void read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace offstage::exec
