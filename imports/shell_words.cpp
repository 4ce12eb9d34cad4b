#include "imports/shell_words.h"

#include <cctype>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "platform/error.h"

namespace offstage::imports {
namespace {

class Splitter {
 public:
  Splitter(const std::string& file, const std::string& text) : file_(file), text_(text) {}

  std::vector<ShellWord> words() {
    while (skip_blanks()) read_word();
    return std::move(words_);
  }

 private:
  bool done() const { return at_ >= text_.size(); }
  bool blank() const { return std::isspace(static_cast<unsigned char>(text_[at_])) != 0; }
  bool continues() const {
    return text_[at_] == '\\' && (at_ + 1 >= text_.size() || text_[at_ + 1] == '\n');
  }
  int column() const { return static_cast<int>(at_ - line_start_) + 1; }

  char advance() {
    const char letter = text_[at_++];
    if (letter == '\n') {
      ++line_;
      line_start_ = at_;
    }
    return letter;
  }

  // To the next word; false at the end.
  bool skip_blanks() {
    while (!done()) {
      if (continues()) {
        advance();
      } else if (text_[at_] == '#') {
        while (!done() && text_[at_] != '\n') advance();
      } else if (!blank()) {
        return true;
      } else {
        advance();
      }
    }
    return false;
  }

  void read_word() {
    ShellWord word{"", false, line_, column()};
    while (!done() && !blank() && !continues()) {
      const char letter = text_[at_];
      if (letter == '"' || letter == '\'') {
        read_quoted(word);
      } else {
        if (letter == '\\') advance();
        word.text += advance();
      }
    }
    words_.push_back(std::move(word));
  }

  void read_quoted(ShellWord& word) {
    const int line = line_, start = column();
    const char quote = advance();
    word.quoted = true;
    while (!done() && text_[at_] != quote) {
      if (quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size()) advance();
      word.text += advance();
    }
    if (done()) {
      throw Error(ErrorCode::bad_input, fmt::format("this quote ({}) has no end; close it", quote),
                  {file_, line, start});
    }
    advance();
  }

  const std::string& file_;
  const std::string& text_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
  std::vector<ShellWord> words_;
};

}  // namespace

std::vector<ShellWord> split_shell_words(const std::string& file, const std::string& text) {
  return Splitter(file, text).words();
}

}  // namespace offstage::imports
