#include "cli/study/files.h"

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace offstage::cli {

using nlohmann::json;

StudyFolder::StudyFolder(const std::filesystem::path& folder, const StudyStart& start, bool restart)
    : folder_(folder), path_(folder / "rows.jsonl") {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw Error(ErrorCode::io, fmt::format("can't make {}: {}", folder.string(), error.message()));
  }
  try {
    open(restart);
    read(start);
    has_changed_ = !results_.empty() && last_study_ && *last_study_ != start.study_hash;
    if (last_study_ != start.study_hash) {
      write_line({{"study", start.study_hash},
                  {"version", start.version},
                  {"program", start.program},
                  {"rows", start.rows}});
    }
  } catch (...) {
    if (descriptor_ >= 0) close(descriptor_);
    throw;
  }
}

StudyFolder::~StudyFolder() { close(descriptor_); }

Error StudyFolder::failure(const std::string& what) const {
  return {ErrorCode::io,
          fmt::format("{} {}: {}", path_.string(), what, std::generic_category().message(errno))};
}

void StudyFolder::open(bool restart) {
  constexpr mode_t kMode = 0666;  // less the umask
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, kMode);
  if (descriptor_ < 0) throw failure("can't be opened");
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) throw failure("can't be locked");
    throw Error(ErrorCode::io,
                fmt::format("another study writes into {}; wait for its end, or name another "
                            "folder",
                            folder_.string()));
  }
  if (restart && ftruncate(descriptor_, 0) != 0) throw failure("can't be emptied");
}

void StudyFolder::read(const StudyStart& start) {
  std::string text;
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t count = ::read(descriptor_, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw failure("can't be read");
    if (count == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    read_line(text.substr(begin, end - begin), start);
    begin = end + 1;
  }
  // What follows the last line's end was being written when the writer was ended.
  if (begin < text.size() && ftruncate(descriptor_, static_cast<off_t>(begin)) != 0) {
    throw failure("can't be cut to its last whole line");
  }
}

void StudyFolder::read_line(const std::string& line, const StudyStart& start) {
  json object = json::parse(line, nullptr, false);
  // A line that the disk lost: its row is computed again.
  if (!object.is_object()) return;
  if (object.contains("study")) {
    const bool same_version = object.value("version", "") == start.version;
    if (!same_version || object.value("program", "") != start.program) {
      throw Error(
          ErrorCode::bad_usage,
          fmt::format("the rows in {} were computed by {}offstage {}, this is {}; --restart "
                      "computes them again, or name another folder",
                      folder_.string(), same_version ? "another build of " : "",
                      object.value("version", "?"), start.version));
    }
    last_study_ = object.value("study", "");
  } else if (object.contains("config_hash") && object.contains("result")) {
    results_[object["config_hash"].get<std::string>()] = std::move(object["result"]);
  }
}

const json* StudyFolder::find(const std::string& config_hash) const {
  const auto found = results_.find(config_hash);
  return found == results_.end() ? nullptr : &found->second;
}

void StudyFolder::append(const std::string& config_hash, const json& result) {
  write_line({{"config_hash", config_hash}, {"result", result}});
}

void StudyFolder::write_line(const json& object) {
  const std::string line = object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  std::size_t written = 0;
  while (written < line.size()) {
    const ssize_t count = ::write(descriptor_, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw failure("can't be written");
    written += static_cast<std::size_t>(count);
  }
  if (fdatasync(descriptor_) != 0) throw failure("can't be synced");
}

}  // namespace offstage::cli
