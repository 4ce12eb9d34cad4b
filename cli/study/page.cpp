#include "cli/study/page.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/report_page.h"
#include "platform/format.h"

namespace offstage::cli {
namespace {

using nlohmann::json;
using report::Cell;
using report::ChartKind;
using report::ChartSection;
using report::Format;
using report::TableSection;

constexpr std::size_t kMostSeries = 24;
constexpr std::size_t kMostBars = 60;
// The name of what has no other keys to tell it from others.
constexpr const char* kNothingElse = "all";

double number(std::size_t value) { return static_cast<double>(value); }

Cell cell_of(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_null()) return Cell();
  return shown_text(value);
}

std::string label_of(const StudySpec& study, const StudyRow& row,
                     std::optional<std::size_t> without) {
  const std::string label = values_text(study, row, without);
  return label.empty() ? kNothingElse : label;
}

ChartSection speed_chart(const StudyAnswer& answer, std::size_t key) {
  ChartSection chart{.title = "Speed",
                     .kind = ChartKind::lines,
                     .x = {answer.study.names()[key], Format::plain},
                     .y = {"tokens per second", Format::count}};
  const SpeedLines speeds = speed_lines(answer, key);
  for (const SpeedLine& line : speeds.lines) {
    report::Series series{line.name.empty() ? kNothingElse : line.name.c_str()};
    for (const auto& [x, y] : line.points) series.points.push_back({x, y, series.name});
    chart.series.push_back(std::move(series));
  }
  if (chart.series.size() > kMostSeries) {
    chart.text = fmt::format("The first {} of {} combinations.", kMostSeries, chart.series.size());
    chart.series.resize(kMostSeries);
  }
  chart.x.logarithmic = speeds.is_wide;
  return chart;
}

ChartSection speed_bars(const StudyAnswer& answer) {
  ChartSection chart{.title = "Speed",
                     .kind = ChartKind::bars,
                     .y = {"tokens per second", Format::count},
                     .series = {report::Series{"tokens per second"}}};
  for (const Repeated& group : repeated_rows(answer)) {
    if (!group.median_tokens_per_s || chart.categories.size() == kMostBars) continue;
    chart.series[0].points.push_back({number(chart.categories.size()), *group.median_tokens_per_s});
    chart.categories.push_back(label_of(answer.study, group.first->row, std::nullopt));
  }
  return chart;
}

TableSection key_table(const StudyAnswer& answer, const std::vector<Repeated>& groups,
                       std::size_t position, const VariedKey& key) {
  TableSection table{.title = key.name,
                     .columns = {{"value"},
                                 {"rows"},
                                 {"simulated"},
                                 {"best tokens/s", Format::count},
                                 {"median tokens/s", Format::count},
                                 {"best step", Format::seconds}},
                     .half = true};
  for (const VariedValue& value : key.values) {
    std::vector<double> speeds, steps;
    std::size_t rows = 0;
    for (const Repeated& group : groups) {
      if (answer.study.values(group.first->row)[position] != value.shown) continue;
      ++rows;
      if (!group.median_tokens_per_s) continue;
      speeds.push_back(*group.median_tokens_per_s);
      steps.push_back(*group.median_step_s);
    }
    std::vector<Cell> cells{shown_text(value.shown), number(rows), number(speeds.size())};
    if (speeds.empty()) {
      cells.resize(cells.size() + 3);
    } else {
      cells.insert(cells.end(), {*std::ranges::max_element(speeds), median(speeds),
                                 *std::ranges::min_element(steps)});
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

TableSection rows_table(const StudyAnswer& answer) {
  TableSection table{.title = "Rows", .columns = {{"row"}}};
  for (const std::string& name : answer.study.names()) table.columns.push_back({name});
  if (answer.study.repetitions > 1) table.columns.push_back({"repetition"});
  for (const report::Column& column :
       {report::Column{"status"}, report::Column{"tokens/s", Format::count},
        report::Column{"step", Format::seconds}, report::Column{"MFU", Format::fraction},
        report::Column{"efficiency", Format::fraction, true}, report::Column{"bound by"},
        report::Column{"GPU peak", Format::bytes}, report::Column{"host peak", Format::bytes},
        report::Column{"reason"}}) {
    table.columns.push_back(column);
  }
  for (const ComputedRow& row : answer.rows) {
    std::vector<Cell> cells{number(row.row.index + 1)};
    for (const json& value : answer.study.values(row.row)) cells.push_back(cell_of(value));
    if (answer.study.repetitions > 1) cells.emplace_back(static_cast<double>(row.row.repetition));
    for (const char* key : {"status", "tokens_per_s", "step_s", "mfu", "efficiency", "bound_by",
                            "peak_gpu_bytes", "peak_host_bytes", "reason"}) {
      cells.push_back(row.result.contains(key) ? cell_of(row.result[key]) : Cell());
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// The fastest row, and what it is.
std::optional<report::Fact> best_fact(const StudyAnswer& answer,
                                      const std::vector<Repeated>& groups) {
  const Repeated* best = nullptr;
  for (const Repeated& group : groups) {
    if (!group.median_tokens_per_s) continue;
    if (best == nullptr || *best->median_tokens_per_s < *group.median_tokens_per_s) best = &group;
  }
  if (best == nullptr) return std::nullopt;
  return report::Fact{"fastest", platform::scaled_text(*best->median_tokens_per_s, "tokens/s"),
                      label_of(answer.study, best->first->row, std::nullopt), report::Tone::good};
}

}  // namespace

report::Page study_page(const StudyAnswer& answer) {
  report::Page page{
      .title = "Study " + std::filesystem::path(answer.study.file).filename().string(),
      .subtitle = fmt::format("{} steps of each row simulated", answer.study.steps),
      .facts = {{"rows", fmt::format("{}", answer.rows.size()),
                 fmt::format("{} simulated", answer.count("ok"))}},
      .footer = {program_version(), "study " + answer.study_hash}};
  const auto groups = repeated_rows(answer);
  if (auto best = best_fact(answer, groups)) page.facts.push_back(std::move(*best));
  for (const auto& [status, words] :
       {std::pair{"does_not_fit", "do not fit"}, std::pair{"impossible", "impossible together"},
        std::pair{"failed", "failed"}}) {
    const std::size_t count = answer.count(status);
    if (count > 0) page.facts.push_back({words, fmt::format("{}", count)});
  }
  if (answer.count("ok") > 0) {
    const auto key = numeric_key(answer.study);
    page.sections.emplace_back(key ? speed_chart(answer, *key) : speed_bars(answer));
  }
  std::size_t position = 0;
  for (const Axis& axis : answer.study.axes) {
    for (const VariedKey& key : axis.keys) {
      if (key.values.size() > 1) {
        page.sections.emplace_back(key_table(answer, groups, position, key));
      }
      ++position;
    }
  }
  page.sections.emplace_back(rows_table(answer));
  return page;
}

}  // namespace offstage::cli
