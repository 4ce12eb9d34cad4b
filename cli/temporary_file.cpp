#include "cli/temporary_file.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include "platform/error.h"

namespace offstage::cli {

TemporaryFile::TemporaryFile(const std::string& suffix) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  path_ = (folder / ("offstage-XXXXXX" + suffix)).string();
  const int file = error ? -1 : mkstemps(path_.data(), static_cast<int>(suffix.size()));
  if (file < 0) {
    throw Error(ErrorCode::io,
                fmt::format("{}: a temporary file can't be made there: {}", path_,
                            error ? error.message() : std::generic_category().message(errno)));
  }
  close(file);
}

TemporaryFile::~TemporaryFile() { unlink(path_.c_str()); }

}  // namespace offstage::cli
