#include "exec/atomic_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "platform/error.h"

namespace offstage::exec {
namespace {

Error failed(const std::string& path, const char* what) {
  return {ErrorCode::io, fmt::format("{}: can't be {}: {}", path, what, std::strerror(errno))};
}

// A rename is lasting once the folder that records it is.
void sync_folder_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  sync_folder(parent.empty() ? "." : parent.string());
}

}  // namespace

void sync_folder(const std::string& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) throw failed(folder, "opened");
  const bool synced = fsync(descriptor) == 0;
  close(descriptor);
  if (!synced) throw failed(folder, "synced");
}

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_(fmt::format("{}.{}.part", path_, getpid())) {
  constexpr mode_t kMode = 0666;  // less the user's umask
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode);
  if (descriptor_ < 0) throw failed(temporary_, "created");
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw failed(temporary_, "written");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void AtomicFile::commit() {
  if (fsync(descriptor_) != 0) throw failed(temporary_, "synced");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) throw failed(path_, "replaced");
  close(descriptor_);
  descriptor_ = -1;
  sync_folder_of(path_);
}

}  // namespace offstage::exec
