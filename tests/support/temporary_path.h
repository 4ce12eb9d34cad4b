#pragma once

#include <filesystem>
#include <string>

#include <unistd.h>

namespace offstage {

// A path of this process's own in the folder for temporary files: tests run side by side.
inline std::filesystem::path temporary_path(const std::string& name) {
  return std::filesystem::temp_directory_path() /
         ("offstage-" + std::to_string(getpid()) + "-" + name);
}

}  // namespace offstage
