#include "platform/document_edit.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "platform/document_node.h"

namespace offstage::platform {
namespace {

using Data = std::shared_ptr<const NodeData>;

std::shared_ptr<NodeData> made_at(const Where& where, Node::Kind kind) {
  auto data = std::make_shared<NodeData>();
  data->file = std::make_shared<const std::string>(where.file);
  data->line = where.line.value_or(1);
  data->column = where.column.value_or(1);
  data->kind = kind;
  return data;
}

void put(NodeData& map, const NodeData::Entry& entry) {
  const auto [known, fresh] = map.index.emplace(entry.key, map.entries.size());
  if (fresh) {
    map.entries.push_back(entry);
  } else {
    map.entries[known->second] = entry;
  }
}

void take_out(NodeData& map, std::size_t place) {
  map.entries.erase(map.entries.begin() + static_cast<std::ptrdiff_t>(place));
  map.index.clear();
  for (std::size_t i = 0; i < map.entries.size(); ++i) map.index.emplace(map.entries[i].key, i);
}

std::vector<std::string> split(const EditedKey& key) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= key.path.size()) {
    const std::size_t end = std::min(key.path.find('.', begin), key.path.size());
    parts.push_back(key.path.substr(begin, end - begin));
    begin = end + 1;
    if (parts.back().empty()) {
      throw Error(
          ErrorCode::bad_input,
          fmt::format("'{}' is no path of keys; write keys joined by single dots", key.path),
          key.where);
    }
  }
  return parts;
}

// A copy of `old` (absent: nothing there) in which the path leads to `value`. Shares all the rest.
Data replaced(const Data& old, const EditedKey& key, std::span<const std::string> path,
              const Data& value) {
  if (path.empty()) return value;
  std::shared_ptr<NodeData> map;
  if (!old || old->kind == Node::Kind::null) {
    map = made_at(key.where, Node::Kind::map);
  } else if (old->kind == Node::Kind::map) {
    map = std::make_shared<NodeData>(*old);
  } else {
    throw Error(ErrorCode::bad_input,
                fmt::format("{}: there is no key '{}' in what {}:{} holds, which is no map",
                            key.path, path.front(), *old->file, old->line),
                key.where);
  }
  NodeData::Entry entry{path.front(), nullptr, key.where.line.value_or(1),
                        key.where.column.value_or(1),
                        std::make_shared<const std::string>(key.where.file)};
  const auto found = map->index.find(path.front());
  const bool is_there = found != map->index.end();
  if (path.size() == 1 && value->kind == Node::Kind::null) {
    if (is_there) take_out(*map, found->second);
    return map;
  }
  // A key on the way stays where it is.
  if (is_there && path.size() > 1) entry = map->entries[found->second];
  entry.value =
      replaced(is_there ? map->entries[found->second].value : nullptr, key, path.subspan(1), value);
  put(*map, entry);
  return map;
}

}  // namespace

Document with_value(const Document& base, const EditedKey& key, const Node& value) {
  const auto path = split(key);
  const Data root = replaced(NodeAccess::data(base.root()), key, path, NodeAccess::data(value));
  return NodeAccess::document(base.file(), NodeAccess::node(root));
}

std::vector<KeyAndValue> entries(const Node& map) {
  const auto keys = map.keys();  // also refuses what is no map
  std::vector<KeyAndValue> entries;
  entries.reserve(keys.size());
  for (const auto& entry : NodeAccess::data(map)->entries) {
    const Where where{entry.file ? *entry.file : map.where().file, entry.line, entry.column};
    const std::string path = map.path().empty() ? entry.key : map.path() + "." + entry.key;
    entries.push_back({entry.key, where, NodeAccess::node(entry.value, path)});
  }
  return entries;
}

Node scalar(const std::string& text, const Where& where) {
  const auto data = made_at(where, Node::Kind::scalar);
  data->scalar = text;
  return NodeAccess::node(data);
}

Node map_of(const std::string& key, const Node& value) {
  const Where where = value.where();
  const auto data = made_at(where, Node::Kind::map);
  put(*data, {key, NodeAccess::data(value), data->line, data->column, nullptr});
  return NodeAccess::node(data);
}

Node empty_map(const Where& where) { return NodeAccess::node(made_at(where, Node::Kind::map)); }

Document document_of(const Node& root) {
  return NodeAccess::document(root.where().file, NodeAccess::node(NodeAccess::data(root)));
}

}  // namespace offstage::platform
