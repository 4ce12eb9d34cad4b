#include "cli/capacity/plot.h"

#include <fmt/format.h>

#include "cli/gnuplot.h"

namespace offstage::cli {
namespace {

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
  return gnuplot_text(data_of(capacity) + "set terminal dumb 78 18 noenhanced\n" + axes() +
                      kLargestTitle + "plot $largest with linespoints pt 'o'\n");
}

void write_svg(const CapacityAnswer& capacity, const std::string& path) {
  write_svg(
      SvgPicture{.data = data_of(capacity),
                 .plot = axes() + "set grid\nset multiplot layout 1,2\n" + kLargestTitle +
                         "plot $largest with linespoints pt 7 lw 2\n" + speed_title(capacity) +
                         "plot $speed with linespoints pt 7 lw 2\nunset multiplot\n"},
      path);
}

}  // namespace offstage::cli
