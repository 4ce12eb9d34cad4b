#include "cli/study/values.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "platform/document_edit.h"

namespace offstage::cli {
namespace {

using nlohmann::json;
using platform::Node;

// More values in one range are a slip of the keyboard.
constexpr std::size_t kMostValues = 10'000;
constexpr double kLargestNumber = 1e15;  // a double still tells its neighbours apart
// A whole number of steps leads to the range's end, but for rounding.
constexpr double kRounding = 1e-9;

json shown(const Node& value) { return json::parse(value.json()); }

// As a user would write it: 16, not 16.0, nor 0.30000000000000004.
std::string number_text(double value) {
  return value == std::round(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.12g}", value);
}

struct Range {
  double from = 0.0, to = 0.0, by = 0.0;
  bool is_product = false;

  double at(std::size_t i) const {
    const auto count = static_cast<double>(i);
    return is_product ? from * std::pow(by, count) : from + by * count;
  }
  bool is_past_the_end(double value) const {
    const double slack = kRounding * std::max(std::abs(from), std::abs(to));
    return to >= from ? value > to + slack : value < to - slack;
  }
};

Range read_range(const Node& node) {
  node.allow_keys({"from", "to", "step", "times"});
  const auto number = [](const Node& at) { return at.number(-kLargestNumber, kLargestNumber); };
  Range range{.from = number(node.at("from")), .to = number(node.at("to"))};
  const auto step = node.find("step"), times = node.find("times");
  if (step.has_value() == times.has_value()) {
    throw node.error("a range has from, to, and one of step (added) and times (multiplied)");
  }
  range.is_product = times.has_value();
  const Node& by = step ? *step : *times;
  range.by = number(by);
  const bool rises = range.to >= range.from;
  const bool ends = range.is_product ? range.from > 0.0 && range.to > 0.0 && range.by > 0.0 &&
                                           (rises ? range.by > 1.0 : range.by < 1.0)
                                     : (rises ? range.by > 0.0 : range.by < 0.0);
  if (!ends) {
    throw by.error(
        fmt::format("{} {} from {} never reaches {}; a step has the sign of the way, "
                    "times is above 1 upwards and between 0 and 1 downwards",
                    step ? "steps of" : "times", number_text(range.by), number_text(range.from),
                    number_text(range.to)));
  }
  return range;
}

std::vector<Node> values_of_range(const Node& node) {
  const Range range = read_range(node);
  std::vector<Node> values;
  for (std::size_t i = 0; !range.is_past_the_end(range.at(i)); ++i) {
    if (i >= kMostValues) {
      throw node.error(fmt::format("the range has more than {} values", kMostValues));
    }
    values.push_back(platform::scalar(number_text(range.at(i)), node.where()));
  }
  return values;
}

bool is_range(const Node& node) {
  const auto keys = node.keys();
  const auto has = [&keys](const char* key) { return std::ranges::count(keys, key) > 0; };
  return has("from") || has("to");
}

void add(VariedKey& varied, const Where& where, const Node& value, json name) {
  varied.values.push_back(
      {std::move(name), value, {{{.path = varied.name, .where = where}, value}}});
}

// A case: several keys of the run config that are set together.
void add_case(VariedKey& varied, const platform::KeyAndValue& named) {
  VariedValue value{named.key, named.value, {}};
  if (!named.value.is_null()) {  // a case that changes nothing: the base itself
    for (const auto& [key, where, setting] : entries(named.value)) {
      value.settings.push_back({{.path = key, .where = where}, setting});
    }
  }
  varied.values.push_back(std::move(value));
}

}  // namespace

bool is_case(const std::string& name) { return name == "case" || name.starts_with("case "); }

VariedKey read_varied_key(const std::string& name, const Where& where, const Node& node) {
  VariedKey varied{name, {}};
  if (node.is_sequence() && !is_case(name)) {
    for (const Node& value : node.items()) add(varied, where, value, shown(value));
  } else if (!node.is_map()) {
    throw node.error(is_case(name)
                         ? "expected a map from the names of cases to maps of keys and values"
                         : "expected a list of values, a range {from, to, step or times}, or a map "
                           "of named values");
  } else if (!is_case(name) && is_range(node)) {
    for (const Node& value : values_of_range(node)) add(varied, where, value, shown(value));
  } else {
    for (const auto& named : entries(node)) {
      if (is_case(name)) {
        add_case(varied, named);
      } else {
        add(varied, where, named.value, named.key);
      }
    }
  }
  if (varied.values.empty()) throw node.error("there are no values; write at least one");
  std::set<json> known;
  for (const VariedValue& value : varied.values) {
    if (known.insert(value.shown).second) continue;
    throw value.place.error(fmt::format("the value {} is written twice", value.shown.dump()));
  }
  return varied;
}

}  // namespace offstage::cli
