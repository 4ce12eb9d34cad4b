#include "exec/open_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/error.h"

namespace offstage::exec {
namespace {

Error failed(const std::string& path, const std::string& what) {
  return {ErrorCode::io, fmt::format("{}: {}", path, what)};
}

}  // namespace

OpenFile::OpenFile(const std::string& path)
    : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) throw failed(path, fmt::format("can't be opened: {}", std::strerror(errno)));
  struct stat status {};
  const bool known = fstat(descriptor_, &status) == 0;
  if (known && S_ISREG(status.st_mode)) {
    size_ = static_cast<std::uint64_t>(status.st_size);
    return;
  }
  const std::string why = known ? "is no regular file" : std::strerror(errno);
  close(descriptor_);
  throw failed(path, why);
}

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void OpenFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t count =
        pread(descriptor_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw failed(path_, std::strerror(errno));
    if (count == 0) throw failed(path_, "ends early");
    done += static_cast<std::size_t>(count);
  }
}

}  // namespace offstage::exec
