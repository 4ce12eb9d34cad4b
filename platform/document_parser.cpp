#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "platform/document.h"
#include "platform/document_node.h"

namespace offstage::platform {
namespace {

// Bounds that no file written for offstage comes near; beyond them a file is a mistake or an
// attack, and reading it would take gigabytes of memory.
constexpr std::size_t kLargestFile = std::size_t{64} * 1024 * 1024;
constexpr std::size_t kMostValues = 2'000'000;
constexpr std::size_t kDeepest = 64;

[[noreturn]] void refuse(const std::string& file, const std::string& message) {
  throw Error(ErrorCode::bad_input, message, Where{file, std::nullopt, std::nullopt});
}

// Line and column of a byte, both from 1.
Where place_of(const std::string& file, const std::string& text, std::size_t offset) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text.size()));
  const auto line_start = std::find(std::make_reverse_iterator(end), text.rend(), '\n').base();
  return {file, static_cast<int>(std::count(text.begin(), end, '\n')) + 1,
          static_cast<int>(end - line_start) + 1};
}

// The first byte that is no UTF-8; text.size() when all of it is.
// Source: RFC 3629, section 4 (overlong forms and surrogates are left to the parsers).
std::size_t first_invalid_utf8(const std::string& text) {
  const auto is_continuation = [&](std::size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  std::size_t at = 0;
  while (at < text.size()) {
    const auto byte = static_cast<unsigned char>(text[at]);
    std::size_t length = 1;
    if (byte >= 0xC2 && byte <= 0xDF) length = 2;
    if (byte >= 0xE0 && byte <= 0xEF) length = 3;
    if (byte >= 0xF0 && byte <= 0xF4) length = 4;
    if (byte >= 0x80 && length == 1) return at;
    for (std::size_t i = 1; i < length; ++i) {
      if (!is_continuation(at + i)) return at;
    }
    at += length;
  }
  return at;
}

// Builds the tree from the parser's events. yaml-cpp's own tree would do, but it keeps duplicated
// keys quietly and expands aliases, so that a small file may grow without limit.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::string file)
      : file_(std::make_shared<const std::string>(std::move(file))) {}

  std::shared_ptr<const NodeData> root() const { return root_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_) fail(mark, "a second document starts here; one file holds one document");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(make(mark, Node::Kind::null));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    fail(mark, "aliases (*name) are not supported; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    if (tag != "?" && tag != "!" && !tag.empty()) refuse_tag(mark, tag);
    auto impl = make(mark, Node::Kind::scalar);
    impl->scalar = value;
    impl->quoted = tag == "!";
    add(std::move(impl));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, Node::Kind::sequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, Node::Kind::map);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    std::shared_ptr<NodeData> impl;
    std::shared_ptr<const NodeData> key;  // of a map: read, its value still to come
  };

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const {
    throw Error(ErrorCode::bad_input, message, {*file_, mark.line + 1, mark.column + 1});
  }
  [[noreturn]] void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    fail(mark, fmt::format("the tag '{}' is not supported; write the value without it", tag));
  }
  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != YAML::NullAnchor) {
      fail(mark, "anchors (&name) are not supported; write the value out where it is used");
    }
  }

  std::shared_ptr<NodeData> make(const YAML::Mark& mark, Node::Kind kind) {
    if (++values_ > kMostValues) {
      fail(mark, fmt::format("more than {} values; split the file", kMostValues));
    }
    auto impl = std::make_shared<NodeData>();
    impl->file = file_;
    impl->line = mark.line + 1;
    impl->column = mark.column + 1;
    impl->kind = kind;
    return impl;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            Node::Kind kind) {
    refuse_anchor(mark, anchor);
    if (tag != "?" && !tag.empty()) refuse_tag(mark, tag);
    if (open_.size() >= kDeepest) {
      fail(mark, fmt::format("nested deeper than {} levels", kDeepest));
    }
    open_.push_back({make(mark, kind), nullptr});
  }

  void close() {
    auto impl = std::move(open_.back().impl);
    open_.pop_back();
    add(std::move(impl));
  }

  void add(std::shared_ptr<NodeData> impl) {
    if (open_.empty()) {
      root_ = std::move(impl);
      return;
    }
    Open& parent = open_.back();
    if (parent.impl->kind == Node::Kind::sequence) {
      parent.impl->items.push_back(std::move(impl));
    } else if (parent.key) {
      parent.impl->entries.push_back(
          {parent.key->scalar, std::move(impl), parent.key->line, parent.key->column, nullptr});
      parent.key = nullptr;
    } else {
      add_key(parent, std::move(impl));
    }
  }

  void add_key(Open& parent, std::shared_ptr<const NodeData> key) {
    const Where where{*file_, key->line, key->column};
    if (key->kind != Node::Kind::scalar) {
      throw Error(ErrorCode::bad_input, "a key must be plain text", where);
    }
    const auto [known, fresh] =
        parent.impl->index.emplace(key->scalar, parent.impl->entries.size());
    if (!fresh) {
      throw Error(ErrorCode::bad_input,
                  fmt::format("the key '{}' is written twice (first on line {}); remove one",
                              key->scalar, parent.impl->entries[known->second].line),
                  where);
    }
    parent.key = std::move(key);
  }

  std::shared_ptr<const std::string> file_;
  std::shared_ptr<const NodeData> root_;
  std::vector<Open> open_;
  std::size_t values_ = 0;
};

// YAML takes trailing commas, comments and `True`; a JSON file must do without, because the tools
// it came from and will go to refuse them.
void check_json(const std::string& file, const std::string& text) {
  if (nlohmann::json::accept(text)) return;
  try {
    // Only to learn what is wrong and where: accept() does not say.
    const auto parsed = nlohmann::json::parse(text);
    OFFSTAGE_CHECK(parsed.is_discarded(), "text that was refused parses");
  } catch (const nlohmann::json::parse_error& error) {
    const std::string what = error.what();
    // "[json.exception...] parse error at line 3, column 5: syntax error while parsing ..."
    const auto colon = what.find(": ");
    const std::size_t at = error.byte > 0 ? error.byte - 1 : 0;
    throw Error(ErrorCode::bad_input,
                fmt::format("not valid JSON: {}",
                            colon == std::string::npos ? what : what.substr(colon + 2)),
                place_of(file, text, at));
  } catch (const nlohmann::json::exception& error) {
    refuse(file, fmt::format("not valid JSON: {}", error.what()));
  }
}

// yaml-cpp refuses JSON's surrogate pairs (\ud83d\ude00), which YAML writes as one escape.
std::string join_surrogates(std::string text) {
  constexpr std::size_t kEscape = 6;  // \uXXXX
  std::string joined;
  std::size_t copied = 0;
  for (std::size_t at = text.find('\\'); at != std::string::npos; at = text.find('\\', at)) {
    if (at + 2 * kEscape > text.size() || text[at + 1] != 'u' || text[at + kEscape] != '\\') {
      at += 2;
      continue;
    }
    const auto high = std::stoul(text.substr(at + 2, 4), nullptr, 16);
    if (high < 0xD800 || high > 0xDBFF) {
      at += kEscape;
      continue;
    }
    const auto low = std::stoul(text.substr(at + kEscape + 2, 4), nullptr, 16);
    joined += text.substr(copied, at - copied);
    joined += fmt::format("\\U{:08x}", 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
    at += 2 * kEscape;
    copied = at;
  }
  if (copied == 0) return text;
  return joined + text.substr(copied);
}

std::string read_text(const std::string& file) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    refuse(file, "no such file; check the path");
  }
  if (std::filesystem::is_directory(status)) refuse(file, "this is a folder; name a file in it");
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse(file, "can't be opened; check its permissions");
  // Read up to the bound rather than ask for the size: devices and pipes have none.
  std::string text;
  std::vector<char> block(std::size_t{1} << 16);
  while (text.size() <= kLargestFile) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    if (in.gcount() <= 0) break;
    text.append(block.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) refuse(file, "can't be read");
  return text;
}

}  // namespace

Document::Document(std::string file, Node root) : file_(std::move(file)), root_(std::move(root)) {}

Node Document::root() const { return root_; }

Document Document::load(const std::string& file) {
  return parse(file, read_text(file), file.ends_with(".json"));
}

Document Document::parse(const std::string& name, const std::string& text, bool json) {
  if (text.size() > kLargestFile) {
    refuse(name, fmt::format("larger than {} MiB; this is not a file offstage reads",
                             kLargestFile / (1024 * 1024)));
  }
  if (const auto nul = text.find('\0'); nul != std::string::npos) {
    throw Error(ErrorCode::bad_input, "a NUL byte; save the file as UTF-8 text",
                place_of(name, text, nul));
  }
  if (const auto bad = first_invalid_utf8(text); bad != text.size()) {
    throw Error(ErrorCode::bad_input, "not UTF-8 text; save the file as UTF-8",
                place_of(name, text, bad));
  }
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) refuse(name, "the file is empty");
  if (json) check_json(name, text);
  TreeBuilder builder(name);
  try {
    std::istringstream in(json ? join_surrogates(text) : text);
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    Where where{name, std::nullopt, std::nullopt};
    if (!error.mark.is_null()) {
      where.line = error.mark.line + 1;
      where.column = error.mark.column + 1;
    }
    throw Error(ErrorCode::bad_input,
                fmt::format("not valid {}: {}", json ? "JSON" : "YAML", error.msg), where);
  }
  if (!builder.root() || builder.root()->kind == Node::Kind::null) {
    refuse(name, "the file holds nothing but comments or null");
  }
  return Document(name, Node(builder.root(), ""));
}

}  // namespace offstage::platform
