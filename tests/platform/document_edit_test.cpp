#include "platform/document_edit.h"

#include <catch2/catch.hpp>

using namespace offstage;
using namespace offstage::platform;
using Catch::Contains;

namespace {

Document base() { return Document::parse("base.yaml", "a: 1\nb: {c: 2, d: 3}\ne: text\n", false); }

// The value at line 2 of another file.
Node other(const std::string& text) {
  return Document::parse("other.yaml", "\nx: " + text, false).root().at("x");
}

EditedKey key(const std::string& path) { return {path, {"other.yaml", 7, 3}}; }

}  // namespace

TEST_CASE("a value is replaced or added, and the base stays as it is", "[platform][unit]") {
  const Document old = base();
  const Document changed = with_value(old, key("b.c"), other("20"));
  CHECK(changed.root().json() == R"({"a":1,"b":{"c":20,"d":3},"e":"text"})");
  CHECK(with_value(changed, key("b.f.g"), other("[1]")).root().at("b").json() ==
        R"({"c":20,"d":3,"f":{"g":[1]}})");
  CHECK(with_value(old, key("b"), other("{z: 1}")).root().at("b").json() == R"({"z":1})");
  CHECK(old.root().json() == R"({"a":1,"b":{"c":2,"d":3},"e":"text"})");
  CHECK(changed.file() == "base.yaml");
}

TEST_CASE("a null takes its key out, and the keys behind it stay", "[platform][unit]") {
  const Document file = Document::parse("other.yaml", "x: null", false);
  const Node null = entries(file.root()).front().value;
  const Document without = with_value(base(), key("b.c"), null);
  CHECK(without.root().json() == R"({"a":1,"b":{"d":3},"e":"text"})");
  CHECK_FALSE(without.root().at("b").find("c").has_value());
  CHECK(without.root().at("b").at("d").integer(1, 9) == 3);
  CHECK(with_value(base(), key("b.z"), null).root().json() == base().root().json());
}

TEST_CASE("every value keeps the place where it was written", "[platform][unit]") {
  const Document changed = with_value(base(), key("b.c"), other("twenty"));
  const Node b = changed.root().at("b");
  CHECK_THROWS_WITH(b.at("c").integer(1, 9), Contains("other.yaml:2:4: b.c: "));
  CHECK_THROWS_WITH(b.at("d").integer(5, 9), Contains("base.yaml:2:14: b.d: "));
  // A key that nobody knows is named where it was written, and so is one on the way to another.
  CHECK_THROWS_WITH(b.allow_keys({"d"}), Contains("other.yaml:7:3: b: unknown key 'c'"));
  CHECK_THROWS_WITH(changed.root().allow_keys({"a", "e"}),
                    Contains("base.yaml:2:1: unknown key 'b'"));
}

TEST_CASE("a path leads through maps only", "[platform][unit]") {
  CHECK_THROWS_WITH(with_value(base(), key("e.f"), other("1")),
                    Contains("other.yaml:7:3: ") && Contains("no map"));
  for (const char* path : {"", "a.", ".a", "b..c"}) {
    CAPTURE(path);
    CHECK_THROWS_WITH(with_value(base(), key(path), other("1")), Contains("no path of keys"));
  }
}

TEST_CASE("values that no file holds read like others", "[platform][unit]") {
  const Where where{"study.yaml", 3, 5};
  CHECK(scalar("16", where).integer(1, 99) == 16);
  CHECK_THROWS_WITH(scalar("16", where).integer(1, 9), Contains("study.yaml:3:5: "));
  CHECK(map_of("name", other("host")).json() == R"({"name":"host"})");
  CHECK(empty_map(where).keys().empty());
  CHECK(document_of(other("{a: 1}")).root().at("a").path() == "a");
}

TEST_CASE("the entries of a map include those without a value", "[platform][unit]") {
  const auto found = entries(Document::parse("m.yaml", "a: 1\nb: ~\n", false).root());
  REQUIRE(found.size() == 2);
  CHECK(found[1].key == "b");
  CHECK(found[1].where.line == 2);
  CHECK(found[1].value.is_null());
  CHECK_THROWS_WITH(entries(other("3")), Contains("expected a map"));
}
