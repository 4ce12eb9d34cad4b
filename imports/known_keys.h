#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The keys of a file format, as data: what an importer reads, and why it leaves the rest aside.
namespace offstage::imports {

struct KnownKey {
  std::string_view path;  // dotted
  // Why the key changes nothing here; empty for keys that an importer reads.
  std::string_view why_ignored = {};
  // Its whole map is left aside for that reason, whatever keys it has.
  bool whole_map = false;
};

class KnownKeys {
 public:
  // The tables together; where two have a key, the first one's entry counts.
  explicit KnownKeys(std::initializer_list<std::span<const KnownKey>> tables);

  // The entry of the path, or of the map around it that is left aside whole; null: unknown.
  const KnownKey* find(std::string_view path) const;
  // Whether a known path is this one or goes through it.
  bool leads_somewhere(std::string_view path) const;
  // The last parts of all known paths below `parent` ("" for the root), each once.
  std::vector<std::string> below(std::string_view parent) const;

 private:
  std::vector<KnownKey> table_;
};

}  // namespace offstage::imports
