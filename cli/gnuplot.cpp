#include "cli/gnuplot.h"

#include <cstdio>
#include <fstream>
#include <vector>

#include <fmt/format.h>
#include <sys/wait.h>

#include "cli/temporary_file.h"
#include "platform/error.h"

namespace offstage::cli {
namespace {

struct Outcome {
  bool started = false;
  int status = 0;
  std::string text;  // standard output and error together
};

// Runs gnuplot on a script; the shell reports 127 for a program it does not find.
Outcome run_gnuplot(const std::string& script) {
  const TemporaryFile file(".gnuplot");
  std::ofstream(file.path()) << script;
  const auto close = [](std::FILE* pipe) { return pclose(pipe); };
  std::FILE* pipe = popen(("gnuplot '" + file.path() + "' 2>&1").c_str(), "r");
  if (pipe == nullptr) return {};
  Outcome outcome;
  std::vector<char> buffer(4096);
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    outcome.text.append(buffer.data(), count);
  }
  const int status = close(pipe);
  constexpr int kNotFound = 127;
  outcome.started = !(WIFEXITED(status) && WEXITSTATUS(status) == kNotFound);
  outcome.status = status;
  return outcome;
}

}  // namespace

std::string gnuplot_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  return quoted + "'";
}

std::optional<std::string> gnuplot_text(const std::string& script) {
  const Outcome outcome = run_gnuplot(script);
  if (!outcome.started || outcome.status != 0) return std::nullopt;
  return outcome.text;
}

void write_svg(const SvgPicture& picture, const std::string& path) {
  // gnuplot's own message for a file it can't write names no reason.
  std::ofstream probe(path, std::ios::trunc);
  probe.close();
  if (!probe) throw Error(ErrorCode::io, fmt::format("cannot write the plot to {}", path));
  const std::string script =
      picture.data +
      fmt::format(
          "set terminal svg size {},{} font 'sans,12' background rgb 'white'\n"
          "set output {}\n",
          picture.width, picture.height, gnuplot_quoted(path)) +
      picture.plot;
  const Outcome outcome = run_gnuplot(script);
  if (!outcome.started) {
    throw Error(ErrorCode::io,
                "the plot is drawn by gnuplot, which is not installed: apt-get install gnuplot-nox "
                "(scripts/setup.sh does)");
  }
  if (outcome.status != 0) {
    throw Error(ErrorCode::io, fmt::format("gnuplot failed on {}: {}", path, outcome.text));
  }
}

}  // namespace offstage::cli
