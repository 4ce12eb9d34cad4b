#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "platform/document.h"

// What a Node points at: one value of a document with its place. Private to document.cpp, which
// answers questions about it, document_parser.cpp, which builds it, and document_edit.cpp, which
// makes one document from another.
namespace offstage::platform {

struct NodeData {
  struct Entry {
    std::string key;
    std::shared_ptr<const NodeData> value;
    int line = 0, column = 0;                 // of the key
    std::shared_ptr<const std::string> file;  // of the key, where it isn't the map's
  };

  std::shared_ptr<const std::string> file;
  int line = 0, column = 0;  // from 1
  Node::Kind kind = Node::Kind::null;
  std::string scalar;
  bool quoted = false;  // text even when it looks like a number
  std::vector<std::shared_ptr<const NodeData>> items;
  std::vector<Entry> entries;
  std::unordered_map<std::string, std::size_t> index;  // of entries by key
};

// For document_edit.cpp.
struct NodeAccess {
  static const std::shared_ptr<const NodeData>& data(const Node& node) { return node.data_; }
  static Node node(std::shared_ptr<const NodeData> data, const std::string& path = "") {
    return Node(std::move(data), path);
  }
  static Document document(std::string file, Node root) {
    return Document(std::move(file), std::move(root));
  }
};

}  // namespace offstage::platform
