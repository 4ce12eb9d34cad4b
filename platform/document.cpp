#include "platform/document.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "platform/document_node.h"

namespace offstage::platform {
namespace {

std::string join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string suggestion(const std::string& word, const std::vector<std::string>& candidates) {
  const auto nearest = nearest_match(word, candidates);
  return nearest ? fmt::format("; did you mean '{}'?", *nearest) : "";
}

Where place_of(const NodeData& map, const NodeData::Entry& entry) {
  return {entry.file ? *entry.file : *map.file, entry.line, entry.column};
}

// What a value is, for messages; long text is cut.
std::string shown(const NodeData& data) {
  constexpr std::size_t kLongest = 60;
  switch (data.kind) {
    case Node::Kind::null:
      return "nothing (null)";
    case Node::Kind::sequence:
      return "a list";
    case Node::Kind::map:
      return "a map";
    case Node::Kind::scalar:
      break;
  }
  const bool cut = data.scalar.size() > kLongest;
  const std::string text = cut ? data.scalar.substr(0, kLongest) + "..." : data.scalar;
  return data.quoted ? fmt::format("the text \"{}\"", text) : fmt::format("'{}'", text);
}

struct ParsedNumber {
  double value = 0.0;
  std::string_view rest;  // what follows the digits
};

// The number at the start of `text`; empty when there is none. Out-of-range ones become infinite.
std::optional<ParsedNumber> leading_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  ParsedNumber parsed;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed.value);
  if (error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    parsed.value = std::numeric_limits<double>::infinity();
  }
  parsed.rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return parsed;
}

bool is_plain_number(const NodeData& data) {
  if (data.kind != Node::Kind::scalar || data.quoted) return false;
  const auto parsed = leading_number(data.scalar);
  return parsed && parsed->rest.empty();
}

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr std::array<Unit, 9> kUnits{{{"B", 1},
                                      {"kB", 1e3},
                                      {"MB", 1e6},
                                      {"GB", 1e9},
                                      {"TB", 1e12},
                                      {"KiB", 1024.0},
                                      {"MiB", 1048576.0},
                                      {"GiB", 1073741824.0},
                                      {"TiB", 1099511627776.0}}};

nlohmann::json json_of(const NodeData& data) {
  nlohmann::json result;
  switch (data.kind) {
    case Node::Kind::null:
      break;
    case Node::Kind::sequence:
      result = nlohmann::json::array();
      for (const auto& item : data.items) result.push_back(json_of(*item));
      break;
    case Node::Kind::map:
      result = nlohmann::json::object();
      for (const auto& entry : data.entries) result[entry.key] = json_of(*entry.value);
      break;
    case Node::Kind::scalar: {
      std::int64_t whole = 0;
      const char* const end = data.scalar.data() + data.scalar.size();
      if (!is_plain_number(data)) {
        const bool boolean = !data.quoted && (data.scalar == "true" || data.scalar == "false");
        result = boolean ? nlohmann::json(data.scalar == "true") : nlohmann::json(data.scalar);
      } else if (std::from_chars(data.scalar.data(), end, whole).ptr == end) {
        result = whole;
      } else {
        result = leading_number(data.scalar)->value;
      }
    }
  }
  return result;
}

// The largest whole number a double holds beside its neighbours.
constexpr double kExactInteger = 9007199254740992.0;  // 2^53, IEEE 754 binary64

}  // namespace

Node::Node(std::shared_ptr<const NodeData> data, std::string path)
    : data_(std::move(data)), path_(std::move(path)) {}

Node::Kind Node::kind() const { return data_->kind; }

Where Node::where() const { return {*data_->file, data_->line, data_->column}; }

Error Node::error(const std::string& message) const {
  return {ErrorCode::bad_input, path_.empty() ? message : fmt::format("{}: {}", path_, message),
          where()};
}

std::optional<Node> Node::find(const std::string& key) const {
  if (!is_map()) throw error(fmt::format("expected a map, got {}", shown(*data_)));
  const auto found = data_->index.find(key);
  if (found == data_->index.end()) return std::nullopt;
  const auto& value = data_->entries[found->second].value;
  if (value->kind == Kind::null) return std::nullopt;
  return Node(value, path_.empty() ? key : path_ + "." + key);
}

Node Node::at(const std::string& key) const {
  if (auto node = find(key)) return *std::move(node);
  if (data_->index.contains(key)) {
    const auto& entry = data_->entries[data_->index.at(key)];
    const std::string path = path_.empty() ? key : path_ + "." + key;
    throw Error(ErrorCode::bad_input, fmt::format("{}: has no value; write one", path),
                place_of(*data_, entry));
  }
  throw error(fmt::format("the key '{}' is missing; add it{}", key, suggestion(key, keys())));
}

std::vector<std::string> Node::keys() const {
  if (!is_map()) throw error(fmt::format("expected a map, got {}", shown(*data_)));
  std::vector<std::string> keys;
  keys.reserve(data_->entries.size());
  for (const auto& entry : data_->entries) keys.push_back(entry.key);
  return keys;
}

void Node::allow_keys(const std::vector<std::string>& allowed) const {
  if (!is_map()) {
    throw error(
        fmt::format("expected a map with the keys {}, got {}", join(allowed), shown(*data_)));
  }
  for (const auto& entry : data_->entries) {
    if (std::find(allowed.begin(), allowed.end(), entry.key) != allowed.end()) continue;
    throw Error(
        ErrorCode::bad_input,
        fmt::format("{}unknown key '{}'{}; allowed here: {}", path_.empty() ? "" : path_ + ": ",
                    entry.key, suggestion(entry.key, allowed), join(allowed)),
        place_of(*data_, entry));
  }
}

std::vector<Node> Node::items() const {
  if (!is_sequence()) throw error(fmt::format("expected a list, got {}", shown(*data_)));
  std::vector<Node> nodes;
  nodes.reserve(data_->items.size());
  for (std::size_t i = 0; i < data_->items.size(); ++i) {
    nodes.push_back(Node(data_->items[i], fmt::format("{}[{}]", path_, i)));
  }
  return nodes;
}

std::string Node::text() const {
  if (!is_scalar()) throw error(fmt::format("expected text, got {}", shown(*data_)));
  const bool boolean = !data_->quoted && (data_->scalar == "true" || data_->scalar == "false");
  if (boolean || is_plain_number(*data_)) {
    throw error(
        fmt::format("expected text, got {}; put quotes around it if it is a name", shown(*data_)));
  }
  return data_->scalar;
}

bool Node::boolean() const {
  if (is_scalar() && !data_->quoted) {
    if (data_->scalar == "true") return true;
    if (data_->scalar == "false") return false;
  }
  throw error(fmt::format("expected true or false, got {}", shown(*data_)));
}

std::int64_t Node::integer(std::int64_t low, std::int64_t high) const {
  const auto range = fmt::format("a whole number from {} to {}", low, high);
  if (!is_plain_number(*data_)) {
    throw error(fmt::format("expected {}, got {}", range, shown(*data_)));
  }
  std::string_view digits = data_->scalar;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc{} || end != digits.data() + digits.size()) {
    // Not plain digits: 1e9, or more than 64 bits hold.
    const double real = leading_number(data_->scalar)->value;
    if (std::abs(real) > kExactInteger || real != std::floor(real)) {
      throw error(fmt::format("expected {}, got {}", range, shown(*data_)));
    }
    value = static_cast<std::int64_t>(real);
  }
  if (value < low || value > high) {
    throw error(fmt::format("expected {}, got {}", range, shown(*data_)));
  }
  return value;
}

double Node::number(double low, double high) const {
  if (is_plain_number(*data_)) {
    const double value = leading_number(data_->scalar)->value;
    if (std::isfinite(value) && value >= low && value <= high) return value;
  }
  throw error(fmt::format("expected a number from {:g} to {:g}, got {}", low, high, shown(*data_)));
}

Bytes Node::bytes(Bytes low, Bytes high) const {
  const auto refuse = [&] {
    return error(
        fmt::format("expected a size from {} to {} bytes, such as 80GiB, 512MiB or 40GB, "
                    "got {}",
                    low.value, high.value, shown(*data_)));
  };
  if (!is_scalar()) throw refuse();
  if (is_plain_number(*data_)) return {integer(low.value, high.value)};
  const auto parsed = leading_number(data_->scalar);
  if (!parsed) throw refuse();
  std::string_view name = parsed->rest;
  while (name.starts_with(' ')) name.remove_prefix(1);
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(),
                                 [&](const Unit& known) { return known.name == name; });
  if (unit == kUnits.end()) throw refuse();
  const double value = std::round(parsed->value * unit->bytes);
  // Compared as doubles first: the cast of a larger one is undefined. `!` also catches NaN.
  constexpr double kMostBytes = 9.2e18;  // just below 2^63
  if (!(std::abs(value) <= kMostBytes)) throw refuse();
  const Bytes bytes{static_cast<std::int64_t>(value)};
  if (bytes < low || bytes > high) throw refuse();
  return bytes;
}

std::string Node::choice(const std::vector<std::string>& allowed) const {
  if (!is_scalar()) {
    throw error(fmt::format("expected one of {}, got {}", join(allowed), shown(*data_)));
  }
  if (std::find(allowed.begin(), allowed.end(), data_->scalar) == allowed.end()) {
    throw error(fmt::format("expected one of {}, got {}{}", join(allowed), shown(*data_),
                            suggestion(data_->scalar, allowed)));
  }
  return data_->scalar;
}

std::string Node::json() const { return json_of(*data_).dump(); }

}  // namespace offstage::platform
