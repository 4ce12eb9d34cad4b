#pragma once

#include <string>
#include <vector>

#include "platform/document.h"

// One document made from another: the same with some values replaced. Every value keeps the place
// where it was written, so that a complaint about one that was put in names the file it came from.
//
//   const Document base = Document::load("run.yaml");
//   const Document other = with_value(base, {"strategy.micro_batch", place}, scalar("4", place));
namespace offstage::platform {

struct EditedKey {
  std::string path;  // keys joined by dots: "strategy.micro_batch"
  Where where;       // what the key's own place becomes; line and column are known
};

// Maps on the way that are missing or null are made; a null value takes the key out. `base` stays
// as it is. Errors: Error(bad_input) at the key's place when the path is empty in some part, or
// leads through a value that is no map.
Document with_value(const Document& base, const EditedKey& key, const Node& value);

// A map's entries with the places of their keys, also those whose value is null.
// Errors: Error(bad_input) when it is no map.
struct KeyAndValue {
  std::string key;
  Where where;  // of the key
  Node value;
};
std::vector<KeyAndValue> entries(const Node& map);

// A value that no file holds, as if it stood, unquoted, at that place.
Node scalar(const std::string& text, const Where& where);
// A map with one entry, at the value's place.
Node map_of(const std::string& key, const Node& value);
Node empty_map(const Where& where);

// A document whose root is this node; its file is the node's.
Document document_of(const Node& root);

}  // namespace offstage::platform
