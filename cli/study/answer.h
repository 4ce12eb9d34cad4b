#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/study/spec.h"

// A study with all its rows, and how it is shown.
namespace offstage::cli {

struct ComputedRow {
  StudyRow row;
  std::string config_hash;
  nlohmann::json result;  // of row_job
};

struct StudyAnswer {
  const StudySpec& study;
  std::string version;
  std::string study_hash;
  std::vector<ComputedRow> rows;  // all, in order

  std::size_t count(const std::string& status) const;
};

// {study, version, steps, repetitions, varied[], counts{}, rows[], wall_s[]}. Rows are the same
// whoever computed them; how long each took stands beside them.
nlohmann::json study_json(const StudyAnswer& answer);

// Counts, for each varied key its values with best and median speed, and the fastest rows.
std::string describe_study(const StudyAnswer& answer);

// Errors: Error(io).
void write_study_csv(const StudyAnswer& answer, const std::string& path);
void write_study_timing(const StudyAnswer& answer, const std::string& path);

// Tokens a second over the first varied key with numbers, a line for each combination of the
// others; where there is no such key, a bar for each combination.
// Errors: those of gnuplot's write_svg, and Error(bad_usage) when no row has a speed.
void write_study_svg(const StudyAnswer& answer, const std::string& path);

// Rows that differ in nothing but the seed.
struct Repeated {
  const ComputedRow* first = nullptr;
  std::optional<double> median_tokens_per_s, median_step_s;  // of those that ran
};
std::vector<Repeated> repeated_rows(const StudyAnswer& answer);

double median(std::vector<double> values);

// The position of the first key whose values are all numbers, at least two of them.
std::optional<std::size_t> numeric_key(const StudySpec& study);

// The row's values but for the key at one position: "planned, dgx-a100-40".
std::string values_text(const StudySpec& study, const StudyRow& row,
                        std::optional<std::size_t> without);

// Tokens a second over the numbers of the key at one position, of the rows that ran: a line for
// each combination of the other keys, named by values_text.
struct SpeedLine {
  std::string name;
  std::vector<std::pair<double, double>> points;
};
struct SpeedLines {
  std::vector<SpeedLine> lines;
  bool is_wide = false;  // numbers that double, which lie evenly on a logarithmic axis
};
SpeedLines speed_lines(const StudyAnswer& answer, std::size_t key);

// A value as tables and pictures show it.
std::string shown_text(const nlohmann::json& value);

}  // namespace offstage::cli
