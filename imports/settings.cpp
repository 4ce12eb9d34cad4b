#include "imports/settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "platform/error.h"

namespace offstage::imports {
namespace {

using platform::Node;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

// A node without a value has no place of its own; the error about it has the key's.
Where place_of_null(const Node& map, const std::string& key) {
  try {
    return map.at(key).where();
  } catch (const Error& error) {
    return error.where().value_or(map.where());
  }
}

Value value_of(const Node& node, std::string key) {
  const Where where = node.where();
  Value value{std::move(key), node.json(), false, where.line.value_or(0), where.column.value_or(0)};
  if (!node.is_scalar()) return value;
  const auto json = nlohmann::json::parse(value.text);
  if (json.is_string()) {
    value.text = json.get<std::string>();
    value.quoted = spelled_number(value.text).has_value();
  } else if (json.is_number_float()) {
    value.text = fmt::format("{:.12g}", json.get<double>());
  }
  return value;
}

// Whole numbers up to here are exact as doubles.
constexpr double kExactInteger = 9007199254740992.0;  // 2^53, IEEE 754 binary64

}  // namespace

std::optional<double> spelled_number(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

Settings::Settings(const Node& root, bool hyphens) { flatten(root, "", hyphens); }

void Settings::flatten(const Node& node, const std::string& path, bool hyphens) {
  for (const std::string& key : node.keys()) {
    std::string name = path.empty() ? key : path + "." + key;
    if (hyphens) std::replace(name.begin(), name.end(), '-', '_');
    const auto child = node.find(key);
    if (!child) {
      const Where where = place_of_null(node, key);
      report(Finding::Kind::ignored,
             Value{name, "null", false, where.line.value_or(0), where.column.value_or(0)},
             "no value: as if the key weren't there");
    } else if (child->is_map() && !child->keys().empty()) {
      flatten(*child, name, hyphens);
    } else {
      values_.push_back(value_of(*child, std::move(name)));
    }
  }
}

void Settings::check_spelling(const KnownKeys& known, const UnknownKeys& unknown) {
  // By index: reports rename, and drop, values on the way.
  for (std::size_t i = 0; i < values_.size();) {
    const std::string key = values_[i].key;
    std::size_t end = key.find('.');
    while (end != std::string::npos && known.leads_somewhere(key.substr(0, end))) {
      end = key.find('.', end + 1);
    }
    if (end == std::string::npos && known.leads_somewhere(key)) {
      ++i;
    } else {
      const Value value = values_[i];
      report_unknown(value, std::min(end, key.size()), known, unknown);
    }
  }
}

// `end`: where the first part that nobody knows ends in the key. Renames that part of all values
// below it, or drops them.
void Settings::report_unknown(const Value& value, std::size_t end, const KnownKeys& known,
                              const UnknownKeys& unknown) {
  const std::string prefix = value.key.substr(0, end);
  const std::size_t dot = prefix.rfind('.');
  const std::string parent = dot == std::string::npos ? "" : prefix.substr(0, dot);
  const std::string name = dot == std::string::npos ? prefix : prefix.substr(dot + 1);
  Value at = value;
  at.key = prefix;
  if (end != value.key.size()) at.text = "{...}";
  const auto nearest = nearest_match(name, known.below(parent));
  const bool strict = std::find(unknown.strict_in.begin(), unknown.strict_in.end(), parent) !=
                      unknown.strict_in.end();
  std::string renamed;
  if (nearest) {
    const std::string meant = parent.empty() ? *nearest : parent + "." + *nearest;
    if (!has(meant) && !has_below(meant)) renamed = meant;
    report(Finding::Kind::misspelt, at,
           fmt::format("no such key; write '{}' ({})", *nearest,
                       strict ? fmt::format("{} refuses it", unknown.program)
                              : fmt::format("{} passes over it in silence", unknown.program)));
  } else if (strict) {
    report(Finding::Kind::impossible, at,
           fmt::format("{} has no such key here and refuses it; remove it", unknown.program));
  } else {
    report(Finding::Kind::ignored, at,
           fmt::format("{} has no such key here and passes over it", unknown.program));
  }
  std::vector<Value> kept;
  for (Value& each : values_) {
    const bool below = each.key == prefix || each.key.starts_with(prefix + ".");
    if (below && renamed.empty()) continue;
    if (below) each.key = renamed + each.key.substr(prefix.size());
    kept.push_back(std::move(each));
  }
  values_ = std::move(kept);
}

bool Settings::has(std::string_view key) const {
  return std::any_of(values_.begin(), values_.end(),
                     [&](const Value& value) { return value.key == key; });
}

bool Settings::has_below(std::string_view key) const {
  return std::any_of(values_.begin(), values_.end(), [&](const Value& value) {
    return value.key.size() > key.size() && value.key.starts_with(key) &&
           value.key[key.size()] == '.';
  });
}

std::optional<Value> Settings::take(std::string_view key) {
  const auto found = std::find_if(values_.begin(), values_.end(),
                                  [&](const Value& value) { return value.key == key; });
  if (found == values_.end()) return std::nullopt;
  Value value = std::move(*found);
  values_.erase(found);
  return value;
}

void Settings::refuse(const Value& value, const std::string& expected) {
  report(Finding::Kind::impossible, value, fmt::format("expected {}", expected));
}

Setting<bool> Settings::flag(std::string_view key) {
  Setting<bool> setting{take(key), {}, false};
  if (!setting.at) return setting;
  const std::string word = lower(setting.at->text);
  // YAML 1.1's words (yaml.org/type/bool.html), which PyYAML reads, and accelerate's str_to_bool.
  constexpr std::array<std::string_view, 6> kTrue{"true", "yes", "on", "1", "y", "t"};
  constexpr std::array<std::string_view, 6> kFalse{"false", "no", "off", "0", "n", "f"};
  if (word == "auto") {
    setting.automatic = true;
  } else if (std::find(kTrue.begin(), kTrue.end(), word) != kTrue.end()) {
    setting.value = true;
  } else if (std::find(kFalse.begin(), kFalse.end(), word) != kFalse.end()) {
    setting.value = false;
  } else {
    refuse(*setting.at, "true or false");
  }
  return setting;
}

Setting<std::int64_t> Settings::whole(std::string_view key, std::int64_t low, std::int64_t high) {
  Setting<std::int64_t> setting{take(key), {}, false};
  if (!setting.at) return setting;
  const auto number = spelled_number(setting.at->text);
  if (lower(setting.at->text) == "auto") {
    setting.automatic = true;
  } else if (!number || *number != std::floor(*number) || std::abs(*number) > kExactInteger ||
             *number < static_cast<double>(low) || *number > static_cast<double>(high)) {
    refuse(*setting.at, fmt::format("a whole number from {} to {}", low, high));
  } else {
    setting.value = static_cast<std::int64_t>(*number);
  }
  return setting;
}

Setting<double> Settings::number(std::string_view key, double low, double high) {
  Setting<double> setting{take(key), {}, false};
  if (!setting.at) return setting;
  const auto number = spelled_number(setting.at->text);
  if (lower(setting.at->text) == "auto") {
    setting.automatic = true;
  } else if (!number || *number < low || *number > high) {
    refuse(*setting.at, fmt::format("a number from {:g} to {:g}", low, high));
  } else {
    setting.value = number;
  }
  return setting;
}

Setting<std::string> Settings::word(std::string_view key, const std::vector<std::string>& allowed) {
  Setting<std::string> setting = text(key);
  if (!setting.value) return setting;
  const auto known = std::find_if(allowed.begin(), allowed.end(), [&](const std::string& word) {
    return lower(word) == lower(*setting.value);
  });
  if (known != allowed.end()) {
    setting.value = *known;
    return setting;
  }
  std::vector<std::string> lowered;
  for (const std::string& word : allowed) lowered.push_back(lower(word));
  const auto nearest = nearest_match(lower(*setting.value), lowered);
  refuse(*setting.at,
         fmt::format("one of {}{}", fmt::join(allowed, ", "),
                     nearest ? fmt::format("; did you mean '{}'?", *nearest) : std::string()));
  setting.value.reset();
  return setting;
}

Setting<std::string> Settings::text(std::string_view key) {
  Setting<std::string> setting{take(key), {}, false};
  if (!setting.at) return setting;
  if (lower(setting.at->text) == "auto") {
    setting.automatic = true;
  } else {
    setting.value = setting.at->text;
  }
  return setting;
}

void Settings::report(Finding::Kind kind, const std::optional<Value>& at, std::string text) {
  if (!at) return;
  findings_.push_back({kind, at->key, at->line, at->column, at->text, std::move(text)});
}

void Settings::report_missing(Finding::Kind kind, std::string_view key, std::string text) {
  findings_.push_back({kind, std::string(key), 0, 0, "", std::move(text)});
}

void Settings::finish(const KnownKeys& known) {
  for (const Value& value : values_) {
    const KnownKey* key = known.find(value.key);
    if (key == nullptr) {
      report(
          Finding::Kind::impossible, value,
          fmt::format("expected a map with the keys {}", fmt::join(known.below(value.key), ", ")));
    } else if (!key->why_ignored.empty()) {
      report(Finding::Kind::ignored, value, std::string(key->why_ignored));
    } else {
      report(Finding::Kind::ignored, value, "has no effect beside the other keys of this file");
    }
  }
  values_.clear();
}

std::vector<Finding> Settings::findings() const {
  std::vector<Finding> sorted = findings_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Finding& a, const Finding& b) {
    const auto place = [](const Finding& finding) {
      return std::pair(finding.line == 0, std::pair(finding.line, finding.column));
    };
    return place(a) < place(b);
  });
  return sorted;
}

}  // namespace offstage::imports
