#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/gnuplot.h"
#include "cli/study/answer.h"
#include "platform/error.h"

// A study as a picture: speed over what was varied.
namespace offstage::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kMostLines = 16;
constexpr std::size_t kMostBars = 40;

std::string shortened(const std::string& label) {
  constexpr std::size_t kLongest = 60;
  return label.substr(0, kLongest);
}

SvgPicture lines(const StudyAnswer& answer, std::size_t key) {
  const SpeedLines speeds = speed_lines(answer, key);
  SvgPicture picture{.width = 900, .height = 480};
  std::string curves;
  for (std::size_t i = 0; i < std::min(speeds.lines.size(), kMostLines); ++i) {
    std::string points;
    for (const auto& [x, y] : speeds.lines[i].points) points += fmt::format("{} {}\n", x, y);
    picture.data += fmt::format("$data{} << EOD\n{}EOD\n", i, points);
    curves += fmt::format("{}$data{} with linespoints pt 7 lw 2 title {}", i == 0 ? "" : ", ", i,
                          gnuplot_quoted(shortened(speeds.lines[i].name)));
  }
  picture.plot = fmt::format(
      "set xlabel {} noenhanced\nset ylabel 'tokens/s'\nset grid\nset yrange [0:*]\n"
      "set key outside right noenhanced\nset format y '%.0s%c'\n{}plot {}\n",
      gnuplot_quoted(answer.study.names()[key]), speeds.is_wide ? "set logscale x 2\n" : "",
      curves);
  return picture;
}

SvgPicture bars(const StudyAnswer& answer) {
  SvgPicture picture{.width = 900};
  picture.data = "$data << EOD\n";
  std::size_t count = 0;
  for (const Repeated& group : repeated_rows(answer)) {
    if (!group.median_tokens_per_s || count == kMostBars) continue;
    std::string label = shortened(values_text(answer.study, group.first->row, std::nullopt));
    std::erase(label, '"');
    picture.data += fmt::format("{} \"{}\" {}\n", count++, label, *group.median_tokens_per_s);
  }
  picture.data += "EOD\n";
  picture.height = 120 + 28 * static_cast<int>(count);
  picture.plot = fmt::format(
      "set xlabel 'tokens/s'\nset xrange [0:*]\nset yrange [{}.5:-0.5]\nset grid x\n"
      "set format x '%.0s%c'\nset key off\nset style fill solid 0.7\nset tics noenhanced\n"
      "plot $data using ($3/2):1:($3/2):(0.35):ytic(2) with boxxyerror lc 1\n",
      count - 1);
  return picture;
}

}  // namespace

void write_study_svg(const StudyAnswer& answer, const std::string& path) {
  if (answer.count("ok") == 0) {
    throw Error(ErrorCode::bad_usage,
                fmt::format("there is nothing to draw into {}: no row has a speed", path));
  }
  const auto key = numeric_key(answer.study);
  write_svg(key ? lines(answer, *key) : bars(answer), path);
}

}  // namespace offstage::cli
