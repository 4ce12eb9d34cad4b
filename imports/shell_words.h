#pragma once

#include <string>
#include <vector>

// A command line as a shell splits it, with the places of its words.
namespace offstage::imports {

struct ShellWord {
  std::string text;  // without its quotes
  bool quoted = false;
  int line = 0, column = 0;  // from 1
};

// Single and double quotes, backslashes, `#` comments. Variables stay as they stand.
// Errors: Error(bad_input) with the place of a quote that has no end.
std::vector<ShellWord> split_shell_words(const std::string& file, const std::string& text);

}  // namespace offstage::imports
