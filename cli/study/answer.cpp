#include "cli/study/answer.h"

#include <algorithm>

#include <fmt/format.h>

#include "cli/csv.h"
#include "cli/study/rows.h"

// What a study hands to programs: JSON and CSV.
namespace offstage::cli {

using nlohmann::json;

namespace {

json row_json(const StudyAnswer& answer, const ComputedRow& computed) {
  const StudySpec& study = answer.study;
  json row{{"row", computed.row.index + 1},
           {"repetition", computed.row.repetition},
           {"seed", computed.row.seed ? json(*computed.row.seed) : json()},
           {"config_hash", computed.config_hash},
           {"version", answer.version}};
  const auto names = study.names();
  const auto values = study.values(computed.row);
  row["values"] = json::object();
  for (std::size_t i = 0; i < names.size(); ++i) row["values"][names[i]] = values[i];
  for (const std::string& key : result_keys()) row[key] = computed.result.value(key, json());
  return row;
}

std::string cell(const json& value) { return value.is_null() ? "" : shown_text(value); }

}  // namespace

std::optional<std::size_t> numeric_key(const StudySpec& study) {
  std::size_t position = 0;
  for (const Axis& axis : study.axes) {
    for (const VariedKey& key : axis.keys) {
      const bool numbers = std::ranges::all_of(
          key.values, [](const VariedValue& value) { return value.shown.is_number(); });
      if (numbers && key.values.size() > 1) return position;
      ++position;
    }
  }
  return std::nullopt;
}

std::string values_text(const StudySpec& study, const StudyRow& row,
                        std::optional<std::size_t> without) {
  const auto values = study.values(row);
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == without) continue;
    text += (text.empty() ? "" : ", ") + shown_text(values[i]);
  }
  return text;
}

std::string shown_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "open" : value.dump();
}

std::size_t StudyAnswer::count(const std::string& status) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      rows, [&status](const ComputedRow& row) { return row.result["status"] == status; }));
}

json study_json(const StudyAnswer& answer) {
  const StudySpec& study = answer.study;
  json varied = json::array(), rows = json::array(), wall = json::array();
  for (const Axis& axis : study.axes) {
    json entry = json::object();
    for (const VariedKey& key : axis.keys) {
      json values = json::array();
      for (const VariedValue& value : key.values) values.push_back(value.shown);
      entry[key.name] = values;
    }
    varied.push_back(entry);
  }
  for (const ComputedRow& row : answer.rows) {
    rows.push_back(row_json(answer, row));
    wall.push_back(row.result.value("wall_s", 0.0));
  }
  json counts = json::object();
  for (const char* status : {"ok", "does_not_fit", "impossible", "failed"}) {
    counts[status] = answer.count(status);
  }
  return {{"study", study.file},     {"version", answer.version},
          {"steps", study.steps},    {"repetitions", study.repetitions},
          {"varied", varied},        {"counts", counts},
          {"rows", std::move(rows)}, {"wall_s", std::move(wall)}};
}

void write_study_csv(const StudyAnswer& answer, const std::string& path) {
  std::vector<std::string> titles{"row"};
  const auto names = answer.study.names();
  titles.insert(titles.end(), names.begin(), names.end());
  titles.insert(titles.end(), {"repetition", "seed"});
  titles.insert(titles.end(), result_keys().begin(), result_keys().end());
  titles.insert(titles.end(), {"config_hash", "version"});
  CsvFile file(path, csv_line(titles));
  for (const ComputedRow& computed : answer.rows) {
    const json row = row_json(answer, computed);
    std::vector<std::string> cells;
    for (const std::string& title : titles) {
      const bool is_varied = row["values"].contains(title);
      cells.push_back(is_varied ? shown_text(row["values"][title]) : cell(row[title]));
    }
    file.line(csv_line(cells));
  }
  file.close();
}

void write_study_timing(const StudyAnswer& answer, const std::string& path) {
  CsvFile file(path, "row,wall_s");
  for (const ComputedRow& row : answer.rows) {
    file.line(fmt::format("{},{:.6f}", row.row.index + 1, row.result.value("wall_s", 0.0)));
  }
  file.close();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2.0;
}

std::vector<Repeated> repeated_rows(const StudyAnswer& answer) {
  const auto repetitions = static_cast<std::size_t>(answer.study.repetitions);
  std::vector<Repeated> groups;
  for (std::size_t begin = 0; begin < answer.rows.size(); begin += repetitions) {
    Repeated group{&answer.rows[begin], {}, {}};
    std::vector<double> speeds, steps;
    for (std::size_t i = begin; i < begin + repetitions; ++i) {
      const json& result = answer.rows[i].result;
      if (result["status"] != "ok") continue;
      speeds.push_back(result["tokens_per_s"].get<double>());
      steps.push_back(result["step_s"].get<double>());
    }
    if (!speeds.empty()) {
      group.median_tokens_per_s = median(speeds);
      group.median_step_s = median(steps);
    }
    groups.push_back(group);
  }
  return groups;
}

SpeedLines speed_lines(const StudyAnswer& answer, std::size_t key) {
  SpeedLines speeds;
  double least = 0.0, most = 0.0;
  for (const Repeated& group : repeated_rows(answer)) {
    if (!group.median_tokens_per_s) continue;
    const double x = answer.study.values(group.first->row)[key].get<double>();
    least = least == 0.0 ? x : std::min(least, x);
    most = std::max(most, x);
    const std::string name = values_text(answer.study, group.first->row, key);
    auto line = std::ranges::find(speeds.lines, name, &SpeedLine::name);
    if (line == speeds.lines.end()) line = speeds.lines.insert(line, {name, {}});
    line->points.emplace_back(x, *group.median_tokens_per_s);
  }
  speeds.is_wide = least > 0.0 && most / least >= 8.0;
  return speeds;
}

}  // namespace offstage::cli
