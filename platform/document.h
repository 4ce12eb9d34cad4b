#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platform/error.h"
#include "platform/units.h"

// One reader for every file a user writes: YAML, or JSON (checked strictly first, then read as the
// subset of YAML it is). Each value remembers its file, line and column, so that every complaint
// names its place. Unknown keys are errors: a reader says which keys it knows.
//
//   const Document doc = Document::load("run.yaml");
//   const Node root = doc.root();
//   root.allow_keys({"sequence_length", "global_batch"});
//   const std::int64_t s = root.at("sequence_length").integer(1, 1 << 20);
namespace offstage::platform {

struct NodeData;

class Node {
 public:
  enum class Kind { null, scalar, sequence, map };

  Kind kind() const;
  bool is_null() const { return kind() == Kind::null; }
  bool is_map() const { return kind() == Kind::map; }
  bool is_sequence() const { return kind() == Kind::sequence; }
  bool is_scalar() const { return kind() == Kind::scalar; }
  // The dotted path from the root, for messages: "workload.sequence_length".
  const std::string& path() const { return path_; }
  Where where() const;

  // A map's entries. at: an Error that names the missing key; find: empty when absent or null.
  // All three refuse a node that is not a map. keys: in the file's order.
  Node at(const std::string& key) const;
  std::optional<Node> find(const std::string& key) const;
  std::vector<std::string> keys() const;
  // Errors: Error(bad_input) at the first key outside `allowed`, naming it, the allowed keys and
  // the nearest match.
  void allow_keys(const std::vector<std::string>& allowed) const;

  // A sequence's entries, in order. Errors: bad_input when this is no sequence.
  std::vector<Node> items() const;

  // Scalars. Each refuses other types and values outside [low, high] with an Error that names value
  // and range. Numbers must be finite; integer() accepts 1e9 when it is a whole number.
  std::string text() const;
  bool boolean() const;
  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  double number(double low, double high) const;
  // A number of bytes, or text with a unit: 80GiB, 40 GB, 512MiB, 1.5TB.
  Bytes bytes(Bytes low, Bytes high) const;
  // One of `allowed`; the error lists them and the nearest.
  std::string choice(const std::vector<std::string>& allowed) const;

  // This value as JSON text on one line, the keys of maps in alphabetical order: equal values give
  // equal text.
  std::string json() const;

  // An Error(bad_input) at this place: `file:line:column: path: message`.
  Error error(const std::string& message) const;

 private:
  friend class Document;
  friend struct NodeAccess;
  explicit Node(std::shared_ptr<const NodeData> data, std::string path);
  std::shared_ptr<const NodeData> data_;  // shared with the Document: nodes may outlive it
  std::string path_;
};

class Document {
 public:
  // Errors: Error(bad_input) with file, line and column when the file is missing, unreadable, a
  // folder, not well-formed, empty, nested deeper than 64, larger than 64 MiB or 2 million values,
  // or writes a key twice. A name ending in .json is held to JSON. YAML's anchors, aliases and tags
  // are refused.
  static Document load(const std::string& file);
  // The same for text already in memory; `name` stands for the file in messages.
  static Document parse(const std::string& name, const std::string& text, bool json);

  Node root() const;
  const std::string& file() const { return file_; }

 private:
  friend struct NodeAccess;
  explicit Document(std::string file, Node root);
  std::string file_;
  Node root_;
};

}  // namespace offstage::platform
