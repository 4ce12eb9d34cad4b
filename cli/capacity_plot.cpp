#include "cli/capacity_plot.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <vector>

#include <fmt/format.h>

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

double tokens(const FrontierModel& frontier, std::int64_t batch) {
  return static_cast<double>(batch * frontier.model.workload.sequence_length);
}

// Lines of "parameters, value": gnuplot's $largest and $speed.
std::string data_of(const CapacityAnswer& capacity) {
  std::string largest = "$largest << EOD\n", speed = "$speed << EOD\n";
  for (const FrontierModel& frontier : capacity.frontier) {
    largest +=
        fmt::format("{} {}\n", frontier.model.parameters, tokens(frontier, frontier.largest.batch));
    const FrontierPoint* asked = nullptr;
    for (const FrontierPoint& point : frontier.points) {
      if (point.batch == capacity.asked.workload.global_batch) asked = &point;
    }
    if (asked == nullptr || !asked->speed) continue;
    speed += fmt::format("{} {}\n", frontier.model.parameters,
                         tokens(frontier, asked->batch) / asked->speed->step.value);
  }
  return largest + "EOD\n" + speed + "EOD\n";
}

std::string axes() {
  return "set logscale xy\n"
         "set format '%.0s%c'\n"
         "set xtics add autofreq\n"
         "set xlabel 'parameters'\n"
         "set key off\n"
         "set offsets graph 0.05, graph 0.05, graph 0.1, graph 0.1\n";
}

constexpr const char* kLargestTitle = "set title 'largest batch, tokens per step'\n";

std::string speed_title(const CapacityAnswer& capacity) {
  return fmt::format("set title 'tokens/s at {} sequences a step'\n",
                     capacity.asked.workload.global_batch);
}

}  // namespace

std::optional<std::string> terminal_plot(const CapacityAnswer& capacity) {
  if (capacity.frontier.size() < 2) return std::nullopt;
  const std::string script = data_of(capacity) + "set terminal dumb 78 18 noenhanced\n" + axes() +
                             kLargestTitle + "plot $largest with linespoints pt 'o'\n";
  const Outcome outcome = run_gnuplot(script);
  if (!outcome.started || outcome.status != 0) return std::nullopt;
  return outcome.text;
}

void write_svg(const CapacityAnswer& capacity, const std::string& path) {
  // gnuplot's own message for a file it can't write names no reason.
  std::ofstream probe(path, std::ios::trunc);
  probe.close();
  if (!probe) throw Error(ErrorCode::io, fmt::format("cannot write the plot to {}", path));
  std::string quoted;
  for (const char c : path) quoted += c == '\'' ? std::string("''") : std::string(1, c);
  const std::string script =
      data_of(capacity) + "set terminal svg size 900,420 font 'sans,12' background rgb 'white'\n" +
      fmt::format("set output '{}'\n", quoted) + axes() + "set grid\nset multiplot layout 1,2\n" +
      kLargestTitle + "plot $largest with linespoints pt 7 lw 2\n" + speed_title(capacity) +
      "plot $speed with linespoints pt 7 lw 2\nunset multiplot\n";
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
