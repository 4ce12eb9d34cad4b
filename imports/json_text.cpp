#include "imports/json_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::imports {
namespace {

struct Fault {
  int line = 0, column = 0;
  std::string text;
};

// Walks over the text once, outside of strings.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::vector<Fault> faults() {
    while (at_ < text_.size()) {
      const char letter = text_[at_];
      if (letter == '"') {
        skip_string();
      } else if (letter == '\'') {
        fault("a single quote; JSON has double quotes only");
        skip_string();
      } else if (starts("//") || letter == '#') {
        fault("a comment; JSON has none: remove it");
        skip_until("\n");
      } else if (starts("/*")) {
        fault("a comment; JSON has none: remove it");
        skip_until("*/");
      } else if (letter == ',' && closes_next()) {
        fault(fmt::format("a comma in front of '{}'; remove it", next()));
        advance();
      } else if (std::isalpha(static_cast<unsigned char>(letter)) != 0) {
        word();
      } else {
        advance();
      }
    }
    return std::move(faults_);
  }

 private:
  bool starts(std::string_view with) const { return text_.substr(at_).starts_with(with); }

  void advance() {
    if (text_[at_] == '\n') {
      ++line_;
      line_start_ = at_ + 1;
    }
    ++at_;
  }

  void fault(std::string text) {
    faults_.push_back({line_, static_cast<int>(at_ - line_start_) + 1, std::move(text)});
  }

  void skip_until(std::string_view end) {
    while (at_ < text_.size() && !starts(end)) advance();
  }

  // From its first quote over its last one, or to the end of the line.
  void skip_string() {
    const char quote = text_[at_];
    advance();
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) advance();
      advance();
    }
    if (at_ < text_.size()) advance();
  }

  // The first letter behind this one that is neither blank nor part of a line comment.
  char next() const {
    std::size_t after = at_ + 1;
    while (after < text_.size()) {
      if (text_.substr(after).starts_with("//") || text_[after] == '#') {
        after = std::min(text_.find('\n', after), text_.size());
      } else if (std::isspace(static_cast<unsigned char>(text_[after])) != 0) {
        ++after;
      } else {
        return text_[after];
      }
    }
    return '\0';
  }

  bool closes_next() const { return next() == '}' || next() == ']'; }

  void word() {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kPython{
        {{"True", "true"}, {"False", "false"}, {"None", "null"}}};
    std::size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) != 0)) ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    for (const auto& [python, json] : kPython) {
      if (word == python) fault(fmt::format("Python's {}; write {}", python, json));
    }
    at_ = end;
  }

  std::string_view text_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
  std::vector<Fault> faults_;
};

}  // namespace

void refuse_common_faults(const std::string& file, const std::string& text) {
  const std::vector<Fault> faults = Scanner(text).faults();
  if (faults.empty()) return;
  std::string message = fmt::format("not valid JSON: {}", faults.front().text);
  for (std::size_t i = 1; i < faults.size(); ++i) {
    message += fmt::format("\n  also {}:{}:{}: {}", file, faults[i].line, faults[i].column,
                           faults[i].text);
  }
  throw Error(ErrorCode::bad_input, message, {file, faults.front().line, faults.front().column});
}

std::string read_text(const std::string& file) {
  constexpr std::uintmax_t kLargest = std::uintmax_t{1} << 20;
  const auto refuse = [&](const char* message) {
    return Error(ErrorCode::bad_input, message, {file, {}, {}});
  };
  std::error_code error;
  if (!std::filesystem::exists(file, error)) throw refuse("no such file; check the path");
  if (!std::filesystem::is_regular_file(file, error)) throw refuse("not a file; name one");
  if (std::filesystem::file_size(file, error) > kLargest || error) {
    throw refuse("larger than 1 MiB; this is no config that people write");
  }
  std::ifstream in(file, std::ios::binary);
  if (!in) throw refuse("can't be opened; check its permissions");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

platform::Document load_json(const std::string& file) {
  const std::string text = read_text(file);
  try {
    return platform::Document::parse(file, text, true);
  } catch (const Error&) {
    refuse_common_faults(file, text);
    throw;
  }
}

}  // namespace offstage::imports
