#include "exec/checkpoint_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include "exec/atomic_file.h"
#include "platform/error.h"

namespace offstage::exec {

namespace fs = std::filesystem;

namespace {

constexpr const char* kUnfinished = ".part";

Error failed(const std::string& path, const std::string& what, int error) {
  return {ErrorCode::io, fmt::format("{}: can't be {}: {}", path, what, std::strerror(error))};
}

}  // namespace

CheckpointFiles::CheckpointFiles(const std::string& directory, std::int64_t step,
                                 std::int64_t parameters)
    : directory_(directory),
      name_(checkpoint_name(step)),
      folder_(directory + "/" + name_ + kUnfinished) {
  try {
    make(parameters);
  } catch (...) {
    discard();
    throw;
  }
}

CheckpointFiles::~CheckpointFiles() { discard(); }

void CheckpointFiles::make(std::int64_t parameters) {
  std::error_code error;
  fs::remove_all(folder_, error);
  fs::create_directory(folder_, error);
  if (error) {
    throw failed(folder_, "made", error.value());
  }
  for (const StatePart part : {StatePart::master, StatePart::m, StatePart::v}) {
    const std::string path = folder_ + "/" + file_name(part);
    int& descriptor = descriptors_[static_cast<int>(part)];
    constexpr mode_t kMode = 0666;  // less the user's umask
    descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, kMode);
    if (descriptor < 0) {
      throw failed(path, "created", errno);
    }
    const auto bytes = static_cast<off_t>(parameters * std::int64_t{sizeof(float)});
    if (const int full = posix_fallocate(descriptor, 0, bytes); full != 0) {
      throw failed(path, fmt::format("given its {} bytes", bytes), full);
    }
  }
}

void CheckpointFiles::discard() {
  for (int& descriptor : descriptors_) {
    if (descriptor >= 0) {
      close(descriptor);
      descriptor = -1;
    }
  }
  if (!published_) {
    std::error_code ignored;  // what stays is removed by the next run
    fs::remove_all(folder_, ignored);
  }
}

void CheckpointFiles::write(StatePart part, std::int64_t first,
                            std::span<const float> values) const {
  auto bytes = std::as_bytes(values);
  auto offset = static_cast<off_t>(first * std::int64_t{sizeof(float)});
  while (!bytes.empty()) {
    const ssize_t count =
        pwrite(descriptors_[static_cast<int>(part)], bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      throw failed(folder_ + "/" + file_name(part), "written", errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
}

std::uint64_t CheckpointFiles::checksum(StatePart part, std::int64_t first,
                                        std::int64_t count) const {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> hash(XXH3_createState(),
                                                                      XXH3_freeState);
  XXH3_64bits_reset(hash.get());
  constexpr std::int64_t kBlock = 256 << 10;  // bytes; as much as an L2 cache holds
  std::vector<std::byte> block(kBlock);
  std::int64_t offset = first * std::int64_t{sizeof(float)};
  const std::int64_t end = offset + count * std::int64_t{sizeof(float)};
  while (offset < end) {
    const auto some = static_cast<std::size_t>(std::min(kBlock, end - offset));
    const ssize_t got = pread(descriptors_[static_cast<int>(part)], block.data(), some, offset);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      throw failed(folder_ + "/" + file_name(part), "read back", got < 0 ? errno : EIO);
    }
    XXH3_64bits_update(hash.get(), block.data(), static_cast<std::size_t>(got));
    offset += got;
  }
  return XXH3_64bits_digest(hash.get());
}

void CheckpointFiles::add(std::string_view name, std::string_view text) const {
  AtomicFile file(fmt::format("{}/{}", folder_, name));
  file.write(text);
  file.commit();
}

std::string CheckpointFiles::publish() {
  for (const StatePart part : {StatePart::master, StatePart::m, StatePart::v}) {
    if (fsync(descriptors_[static_cast<int>(part)]) != 0) {
      throw failed(folder_ + "/" + file_name(part), "synced", errno);
    }
  }
  sync_folder(folder_);
  const std::string whole = directory_ + "/" + name_;
  // One of this step is there when a damaged one was passed over and the run came here again.
  if (fs::exists(whole)) {
    remove_checkpoint(whole);
  }
  if (std::rename(folder_.c_str(), whole.c_str()) != 0) {
    throw failed(folder_, "renamed", errno);
  }
  published_ = true;
  sync_folder(directory_);
  return whole;
}

void remove_checkpoint(const std::string& folder) {
  // A name that no unfinished checkpoint of this step has.
  const std::string aside = folder + ".old" + kUnfinished;
  if (std::rename(folder.c_str(), aside.c_str()) != 0) {
    throw failed(folder, "set aside", errno);
  }
  std::error_code error;
  fs::remove_all(aside, error);
  if (error) {
    throw failed(aside, "removed", error.value());
  }
}

}  // namespace offstage::exec
