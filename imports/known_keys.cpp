#include "imports/known_keys.h"

#include <algorithm>

namespace offstage::imports {
namespace {

// Whether `path` is `parent`, or lies below it.
bool is_within(std::string_view path, std::string_view parent) {
  return path.starts_with(parent) && (path.size() == parent.size() || path[parent.size()] == '.');
}

}  // namespace

KnownKeys::KnownKeys(std::initializer_list<std::span<const KnownKey>> tables) {
  for (const auto table : tables) table_.insert(table_.end(), table.begin(), table.end());
}

const KnownKey* KnownKeys::find(std::string_view path) const {
  for (const KnownKey& known : table_) {
    if (known.path == path || (known.whole_map && is_within(path, known.path))) return &known;
  }
  return nullptr;
}

bool KnownKeys::leads_somewhere(std::string_view path) const {
  return find(path) != nullptr ||
         std::any_of(table_.begin(), table_.end(),
                     [&](const KnownKey& known) { return is_within(known.path, path); });
}

std::vector<std::string> KnownKeys::below(std::string_view parent) const {
  std::vector<std::string> names;
  for (const KnownKey& known : table_) {
    std::string_view rest = known.path;
    if (!parent.empty()) {
      if (rest == parent || !is_within(rest, parent)) continue;
      rest.remove_prefix(parent.size() + 1);
    }
    std::string name(rest.substr(0, rest.find('.')));
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace offstage::imports
