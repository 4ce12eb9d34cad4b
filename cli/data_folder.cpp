#include "cli/data_folder.h"

#include <system_error>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::cli {
namespace {

namespace fs = std::filesystem;

bool holds_data(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "platform" / "catalog", ignored);
}

}  // namespace

fs::path program_path() {
  std::error_code error;
  fs::path path = fs::read_symlink("/proc/self/exe", error);
  if (error) {
    throw Error(
        ErrorCode::io,
        fmt::format("can't find out where this program is: /proc/self/exe: {}", error.message()));
  }
  return path;
}

fs::path find_data_folder(const std::string& given) {
  if (!given.empty()) {
    if (!holds_data(given)) {
      throw Error(ErrorCode::bad_usage,
                  fmt::format("--data {}: no folder platform/catalog in it; give the folder that "
                              "holds platform/, workloads/ and calibration/",
                              given));
    }
    return given;
  }
  const fs::path built_from = OFFSTAGE_SOURCE_FOLDER;
  if (holds_data(built_from)) return built_from;
  const fs::path program = program_path();
  for (fs::path folder = program.parent_path(); folder != folder.root_path();
       folder = folder.parent_path()) {
    if (holds_data(folder)) return folder;
  }
  throw Error(ErrorCode::io,
              fmt::format("no platform/catalog in {} nor above {}; say with --data DIR where it is",
                          built_from.string(), program.string()));
}

scheduler::DataDirectories data_directories(const fs::path& data_folder) {
  return {.catalog = data_folder / "platform" / "catalog",
          .models = data_folder / "workloads" / "models",
          .profiles = data_folder / "calibration" / "profiles"};
}

}  // namespace offstage::cli
