#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// The one exception type of offstage, and the check for broken invariants. A message says what is
// wrong, the value, what is allowed, and where the input said so.
namespace offstage {

// What the caller can do about it; the command line maps each to an exit status (DESIGN section 6).
enum class ErrorCode {
  bad_usage,      // the command line; exit 2
  bad_input,      // a file the user wrote; exit 2
  does_not_fit,   // a well-formed question whose answer is no; exit 1
  out_of_memory,  // a pool's cap was exceeded while running; exit 3
  device,         // a device or backend failed; exit 3
  io,             // data unreadable, disk full; exit 3
};

// A place in a file the user wrote. Line and column count from 1; absent when unknown.
struct Where {
  std::string file;
  std::optional<int> line;
  std::optional<int> column;
};

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message);
  // what() then reads `file:line:column: message`.
  Error(ErrorCode code, const std::string& message, Where where);

  ErrorCode code() const { return code_; }
  const std::optional<Where>& where() const { return where_; }

 private:
  ErrorCode code_;
  std::optional<Where> where_;
};

// The candidate nearest to `word` by edit distance, when it is near enough to be a slip.
std::optional<std::string> nearest_match(std::string_view word,
                                         const std::vector<std::string>& candidates);

namespace detail {
[[noreturn]] void check_failed(const char* condition, const std::string& message, const char* file,
                               int line);
}  // namespace detail

}  // namespace offstage

// A broken invariant of our own (never bad input): prints condition, message and place, then
// aborts. On in release builds too. The message is evaluated only on failure.
#define OFFSTAGE_CHECK(condition, message)                                         \
  do {                                                                             \
    if (!(condition)) {                                                            \
      ::offstage::detail::check_failed(#condition, (message), __FILE__, __LINE__); \
    }                                                                              \
  } while (false)
