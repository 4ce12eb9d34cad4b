#include "exec/scratch_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include "exec/block_io.h"
#include "platform/error.h"
#include "platform/format.h"

namespace offstage::exec {
namespace {

using platform::Bytes;

std::int64_t whole_blocks(std::int64_t size) {
  return (size + ScratchFile::kBlock - 1) / ScratchFile::kBlock * ScratchFile::kBlock;
}

std::uint64_t checksum_of(const std::byte* data, std::int64_t size) {
  return XXH3_64bits(data, static_cast<std::size_t>(size));
}

// Of `size` zeros.
std::uint64_t checksum_of_zeros(std::int64_t size) {
  static constexpr std::array<std::byte, 65536> kZeros{};
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  for (std::int64_t left = size; left > 0;) {
    const std::int64_t part = std::min<std::int64_t>(left, kZeros.size());
    XXH3_64bits_update(state.get(), kZeros.data(), static_cast<std::size_t>(part));
    left -= part;
  }
  return XXH3_64bits_digest(state.get());
}

}  // namespace

ScratchFile::ScratchFile(const std::string& directory, const std::string& name,
                         std::span<const Bytes> sizes) {
  std::int64_t total = 0;
  for (const Bytes size : sizes) {
    buffers_.push_back(
        {.offset = total, .size = size.value, .checksum = checksum_of_zeros(size.value)});
    total += whole_blocks(size.value);
  }
  open(directory, name);
  try {
    allocate(total);
    go_direct();
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

ScratchFile::~ScratchFile() { close(descriptor_); }

void ScratchFile::open(const std::string& directory, const std::string& name) {
  path_ = (std::filesystem::path(directory) / (name + ".XXXXXX")).string();
  descriptor_ = mkostemp(path_.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    const bool no_room = errno == ENOSPC || errno == EDQUOT;
    throw Error(no_room ? ErrorCode::io : ErrorCode::bad_input,
                fmt::format("{}: no file can be made in this folder: {}; name one on the drive",
                            directory, std::strerror(errno)));
  }
  unlink(path_.c_str());
}

void ScratchFile::allocate(std::int64_t total) {
  if (total == 0) {
    return;
  }
  if (const int error = posix_fallocate(descriptor_, 0, total); error != 0) {
    throw Error(ErrorCode::io, fmt::format("{}: {} can't be set aside on the drive: {}", path_,
                                           to_text(Bytes{total}), std::strerror(error)));
  }
}

// A file system may refuse the mode at once, or only when it is used.
void ScratchFile::go_direct() {
  const int flags = fcntl(descriptor_, F_GETFL);
  if (fcntl(descriptor_, F_SETFL, flags | O_DIRECT) != 0) {
    return;
  }
  alignas(kBlock) std::array<std::byte, kBlock> block{};
  direct_ = buffers_.empty() || pread(descriptor_, block.data(), block.size(), 0) >= 0;
  if (!direct_) {
    fcntl(descriptor_, F_SETFL, flags);
  }
}

void ScratchFile::write(std::size_t buffer, const std::byte* from) {
  Stored& stored = buffers_[buffer];
  // Not written to: a request has one type of memory for both directions.
  auto* const memory = const_cast<std::byte*>(from);
  const int error =
      move_blocks(Transfer::write, descriptor_, stored.offset, memory, whole_blocks(stored.size));
  if (error != 0) {
    fail("writing", stored, error);
  }
  stored.checksum = checksum_of(from, stored.size);
}

void ScratchFile::read(std::size_t buffer, std::byte* to) const {
  const Stored& stored = buffers_[buffer];
  const int error =
      move_blocks(Transfer::read, descriptor_, stored.offset, to, whole_blocks(stored.size));
  if (error != 0) {
    fail("reading", stored, error);
  }
  if (checksum_of(to, stored.size) != stored.checksum) {
    throw Error(ErrorCode::io,
                fmt::format("{}: the {} bytes read at {} are not those that were written there "
                            "(checksum): the drive or the file is damaged",
                            path_, stored.size, stored.offset));
  }
}

void ScratchFile::fail(const std::string& doing, const Stored& at, int error) const {
  throw Error(ErrorCode::io, fmt::format("{}: {} {} bytes at {}: {}", path_, doing, at.size,
                                         at.offset, std::strerror(error)));
}

}  // namespace offstage::exec
