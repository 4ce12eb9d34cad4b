#include "exec/run_directory.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "exec/atomic_file.h"
#include "exec/checkpoint.h"
#include "platform/error.h"

namespace offstage::exec {

namespace fs = std::filesystem;

namespace {

// The text a lock file holds: enough to find the process.
std::string holder_of(int descriptor) {
  char text[64] = {};
  const ssize_t size = pread(descriptor, text, sizeof text - 1, 0);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : "unknown";
}

// What a run leaves in its folder, but for the lock.
bool is_of_a_run(const std::string& name) {
  return checkpoint_step(name).has_value() || name == "plan.json" || name == "run.yaml" ||
         name == "metrics.jsonl" || name == "log.txt";
}

}  // namespace

RunDirectory::RunDirectory(std::string path) : path_(std::move(path)) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error || !fs::is_directory(path_)) {
    throw Error(ErrorCode::io, fmt::format("{}: the run's folder can't be made: {}", path_,
                                           error ? error.message() : "no folder"));
  }
  take_lock();
}

RunDirectory::~RunDirectory() {
  // The file stays: removing it would let two runs lock two files of one name.
  close(lock_);
}

void RunDirectory::take_lock() {
  const std::string name = file("lock");
  lock_ = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) {
    throw Error(ErrorCode::io, fmt::format("{}: the run's folder can't be written: {}", name,
                                           std::strerror(errno)));
  }
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    const std::string holder = holder_of(lock_);
    close(lock_);
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: process {} trains here; `offstage stop {}` ends it, or choose "
                            "another train.checkpoint.directory",
                            path_, holder, path_));
  }
  const std::string self = fmt::to_string(getpid());
  if (ftruncate(lock_, 0) != 0 || pwrite(lock_, self.data(), self.size(), 0) < 0) {
    throw Error(ErrorCode::io, fmt::format("{}: can't be written: {}", name, std::strerror(errno)));
  }
}

std::string RunDirectory::file(std::string_view name) const {
  return fmt::format("{}/{}", path_, name);
}

std::string RunDirectory::set_aside_earlier_run() const {
  std::vector<fs::path> earlier;
  for (const auto& entry : fs::directory_iterator(path_)) {
    if (is_of_a_run(entry.path().filename().string())) {
      earlier.push_back(entry.path());
    }
  }
  if (earlier.empty()) {
    return {};
  }
  int number = 1;
  while (fs::exists(file(fmt::format("earlier-{}", number)))) {
    ++number;
  }
  const fs::path aside = file(fmt::format("earlier-{}", number));
  std::error_code error;
  fs::create_directory(aside, error);
  for (const fs::path& path : earlier) {
    if (!error) {
      fs::rename(path, aside / path.filename(), error);
    }
  }
  if (error) {
    throw Error(ErrorCode::io, fmt::format("{}: the earlier run can't be set aside: {}",
                                           aside.string(), error.message()));
  }
  return aside.string();
}

void RunDirectory::log(std::string_view line) {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const std::string text = fmt::format("{:%F %T} {}\n", now, line);
  // One write of a line appended: lines of several threads do not mix.
  const int out = open(file("log.txt").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (out >= 0) {
    [[maybe_unused]] const ssize_t written = write(out, text.data(), text.size());
    close(out);
  }
}

void RunDirectory::open_metrics(std::int64_t done) {
  const std::string name = file("metrics.jsonl");
  std::ifstream before(name);
  AtomicFile kept(name);
  for (std::string line; std::getline(before, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);  // a torn line is discarded
    if (!json.is_object() || json.value("step", std::int64_t{0}) > done) {
      continue;
    }
    kept.write(line + "\n");
  }
  kept.commit();
  metrics_.open(name, std::ios::app);
}

void RunDirectory::add_metrics(const nlohmann::json& line) {
  metrics_ << line.dump() << '\n' << std::flush;
  if (!metrics_ && !metrics_failed_) {
    metrics_failed_ = true;
    log("metrics.jsonl can't be written; the training goes on without it");
    std::fputs("offstage: metrics.jsonl can't be written; the training goes on without it\n",
               stderr);
  }
}

}  // namespace offstage::exec
