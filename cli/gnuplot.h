#pragma once

#include <optional>
#include <string>

// Pictures, drawn by gnuplot.
namespace offstage::cli {

// What a script that draws to a terminal of characters prints; absent when gnuplot is not installed
// or failed.
std::optional<std::string> gnuplot_text(const std::string& script);

struct SvgPicture {
  int width = 900, height = 420;
  std::string data = {}, plot = {};  // parts of the script: before the terminal is set, and after
};
// Errors: Error(io) when gnuplot is missing (saying how to install it) or the file can't be
// written.
void write_svg(const SvgPicture& picture, const std::string& path);

// In single quotes, as a script writes text.
std::string gnuplot_quoted(const std::string& text);

}  // namespace offstage::cli
