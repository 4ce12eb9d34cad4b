#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "platform/error.h"

namespace offstage::cli {

void print_text(std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw Error(ErrorCode::io, fmt::format("standard output can't be written: {}",
                                           std::generic_category().message(errno)));
  }
}

void print_json(const nlohmann::json& object) {
  // A file name need not be UTF-8, JSON must.
  print_text(object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void say(std::string_view line) { fmt::print(stderr, "{}\n", line); }

void show_progress(std::string_view text) {
  if (isatty(STDERR_FILENO) == 0) return;
  // Return to the line's start, write, erase the rest.
  fmt::print(stderr, "\r{}\x1b[K", text);
  std::fflush(stderr);
}

}  // namespace offstage::cli
