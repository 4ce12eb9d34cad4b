#include "platform/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace offstage {
namespace {

std::string with_place(const Where& where, const std::string& message) {
  std::string place = where.file;
  if (where.line) {
    place += fmt::format(":{}", *where.line);
    if (where.column) place += fmt::format(":{}", *where.column);
  }
  return place.empty() ? message : fmt::format("{}: {}", place, message);
}

// Levenshtein distance, one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

Error::Error(ErrorCode code, const std::string& message)
    : std::runtime_error(message), code_(code) {}

Error::Error(ErrorCode code, const std::string& message, Where where)
    : std::runtime_error(with_place(where, message)), code_(code), where_(std::move(where)) {}

std::optional<std::string> nearest_match(std::string_view word,
                                         const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  // Two slips, or a third of a long word: further away is another word, not a misspelling.
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

namespace detail {
void check_failed(const char* condition, const std::string& message, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: internal check failed: %s: %s\n", file, line, condition,
               message.c_str());
  std::abort();
}
}  // namespace detail

}  // namespace offstage
