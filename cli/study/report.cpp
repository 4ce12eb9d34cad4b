#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/study/answer.h"
#include "cli/table.h"
#include "platform/format.h"

// What a study tells people.
namespace offstage::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kTopRows = 5;
constexpr std::size_t kMostValues = 20;  // of a key, in its table

std::string speed_text(double tokens_per_s) { return fmt::format("{:.0f}", tokens_per_s); }

// Long values, such as whole maps, are cut.
std::string short_text(const json& value) {
  constexpr std::size_t kLongest = 40;
  const std::string text = shown_text(value);
  return text.size() > kLongest ? text.substr(0, kLongest - 3) + "..." : text;
}

std::string describe_counts(const StudyAnswer& answer) {
  std::string text = fmt::format("{}: {} row{}", answer.study.file, answer.rows.size(),
                                 answer.rows.size() == 1 ? "" : "s");
  const auto add = [&](const char* status, const char* words) {
    const std::size_t count = answer.count(status);
    if (count > 0) text += fmt::format(", {} {}", count, words);
  };
  add("ok", "simulated");
  add("does_not_fit", "do not fit");
  add("impossible", "impossible together");
  add("failed", "failed");
  return text + "\n";
}

// The values of one key in the order of the study, each over all rows that have it.
std::string describe_key(const StudyAnswer& answer, const std::vector<Repeated>& groups,
                         std::size_t position, const VariedKey& key) {
  if (key.values.size() < 2) return "";
  Table table({key.name, "rows", "run", "best tokens/s", "median", "best step"});
  for (std::size_t i = 0; i < std::min(key.values.size(), kMostValues); ++i) {
    std::vector<double> speeds, steps;
    std::size_t rows = 0;
    for (const Repeated& group : groups) {
      if (answer.study.values(group.first->row)[position] != key.values[i].shown) continue;
      ++rows;
      if (!group.median_tokens_per_s) continue;
      speeds.push_back(*group.median_tokens_per_s);
      steps.push_back(*group.median_step_s);
    }
    std::vector<std::string> cells{short_text(key.values[i].shown), std::to_string(rows),
                                   std::to_string(speeds.size())};
    if (speeds.empty()) {
      cells.insert(cells.end(), {"-", "-", "-"});
    } else {
      cells.push_back(speed_text(*std::ranges::max_element(speeds)));
      cells.push_back(speed_text(median(speeds)));
      cells.push_back(platform::to_text(platform::Seconds{*std::ranges::min_element(steps)}));
    }
    table.add(cells);
  }
  const std::size_t left = key.values.size() - std::min(key.values.size(), kMostValues);
  return "\n" + table.text() + (left > 0 ? fmt::format("  ... {} more\n", left) : "");
}

std::string describe_top(const StudyAnswer& answer, std::vector<Repeated> groups) {
  std::erase_if(groups, [](const Repeated& group) { return !group.median_tokens_per_s; });
  if (groups.empty()) return "";
  std::ranges::stable_sort(groups, [](const Repeated& a, const Repeated& b) {
    return *a.median_tokens_per_s > *b.median_tokens_per_s;
  });
  groups.resize(std::min(groups.size(), kTopRows));
  std::vector<std::string> titles{"fastest rows"};
  for (const std::string& name : answer.study.names()) titles.push_back(name);
  titles.insert(titles.end(), {"tokens/s", "step", "MFU", "bound by"});
  std::vector<Align> align(titles.size(), Align::right);
  align.front() = align.back() = Align::left;
  Table table(titles, align);
  for (const Repeated& group : groups) {
    const json& result = group.first->result;
    std::vector<std::string> cells{std::to_string(group.first->row.index + 1)};
    for (const json& value : answer.study.values(group.first->row)) {
      cells.push_back(short_text(value));
    }
    cells.push_back(speed_text(*group.median_tokens_per_s));
    cells.push_back(platform::to_text(platform::Seconds{*group.median_step_s}));
    cells.push_back(result["mfu"].is_null() ? "-"
                                            : platform::percent_text(result["mfu"].get<double>()));
    cells.push_back(result["bound_by"].is_null() ? "-" : result["bound_by"].get<std::string>());
    table.add(cells);
  }
  return "\n" + table.text();
}

// One of the rows that give no figures, for each reason there is.
std::string describe_refusals(const StudyAnswer& answer) {
  std::map<std::string, std::pair<std::size_t, std::size_t>> reasons;  // count and first row
  constexpr std::size_t kLongest = 160;
  for (const ComputedRow& row : answer.rows) {
    const json& result = row.result;
    if (result["status"] == "ok" || result["status"] == "does_not_fit") continue;
    auto& [count, first] = reasons[result.value("reason", "")];
    if (count++ == 0) first = row.row.index + 1;
  }
  std::string text;
  for (const auto& [reason, found] : reasons) {
    text += fmt::format("  {} row{}, the first {}: {}\n", found.first, found.first == 1 ? "" : "s",
                        found.second, reason.substr(0, kLongest));
  }
  return text.empty() ? "" : "\nWithout figures\n" + text;
}

}  // namespace

std::string describe_study(const StudyAnswer& answer) {
  const auto groups = repeated_rows(answer);
  std::string text = describe_counts(answer);
  std::size_t position = 0;
  for (const Axis& axis : answer.study.axes) {
    for (const VariedKey& key : axis.keys) text += describe_key(answer, groups, position++, key);
  }
  return text + describe_top(answer, groups) + describe_refusals(answer);
}

}  // namespace offstage::cli
