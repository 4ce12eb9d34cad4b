#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "imports/finding.h"
#include "imports/known_keys.h"
#include "platform/document.h"

// A user's file as a flat list of values, read key by key; what is wrong with one becomes a
// finding, never an exception, so that one run shows all of it.
namespace offstage::imports {

struct Value {
  std::string key;           // dotted path, or the flag as written
  std::string text;          // lists and empty maps as JSON
  bool quoted = false;       // a number in quotes
  int line = 0, column = 0;  // of the value
};

// What became of one key: absent, `auto`, or a value. A value that can't be read is absent, too,
// and is a finding.
template <typename T>
struct Setting {
  std::optional<Value> at;  // empty: the file doesn't have the key
  std::optional<T> value;
  bool automatic = false;

  bool absent() const { return !value && !automatic; }
};

// What a program does with keys that it doesn't know.
struct UnknownKeys {
  std::string_view program;                     // for messages
  std::span<const std::string_view> strict_in;  // maps where it refuses them; "" is the root
};

class Settings {
 public:
  Settings() = default;
  // Hyphens in keys become underscores when `hyphens`. Null values are left out, with a finding.
  explicit Settings(const platform::Node& root, bool hyphens = false);

  void add(Value value) { values_.push_back(std::move(value)); }
  // Those that nobody has taken yet.
  const std::vector<Value>& values() const { return values_; }

  // Reports keys that `known` lacks, and goes on with the nearest in their place.
  void check_spelling(const KnownKeys& known, const UnknownKeys& unknown);

  bool has(std::string_view key) const;
  // Whether some key lies below this one.
  bool has_below(std::string_view key) const;

  // Each takes its key off the list. True, "true", 1, yes and on are true, and so on.
  Setting<bool> flag(std::string_view key);
  // 1e9 is a whole number, and so is "1e9".
  Setting<std::int64_t> whole(std::string_view key, std::int64_t low, std::int64_t high);
  Setting<double> number(std::string_view key, double low, double high);
  // Upper and lower case are the same; the result is spelled as in `allowed`.
  Setting<std::string> word(std::string_view key, const std::vector<std::string>& allowed);
  Setting<std::string> text(std::string_view key);

  void report(Finding::Kind kind, const std::optional<Value>& at, std::string text);
  // About a key that the file doesn't have.
  void report_missing(Finding::Kind kind, std::string_view key, std::string text);

  // Reports all keys that nobody took, with the table's reasons.
  void finish(const KnownKeys& known);

  // In the order of the file, then those that the file doesn't have.
  std::vector<Finding> findings() const;

 private:
  void flatten(const platform::Node& node, const std::string& path, bool hyphens);
  std::optional<Value> take(std::string_view key);
  void refuse(const Value& value, const std::string& expected);
  void report_unknown(const Value& value, std::size_t end, const KnownKeys& known,
                      const UnknownKeys& unknown);

  std::vector<Value> values_;
  std::vector<Finding> findings_;
};

// The number that a text spells in full; empty: none.
std::optional<double> spelled_number(std::string_view text);

}  // namespace offstage::imports
