#include "platform/document.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/temporary_path.h"

using namespace offstage;
using namespace offstage::platform;
using Catch::Contains;

namespace {

Document yaml(const std::string& text) { return Document::parse("test.yaml", text, false); }
Document json(const std::string& text) { return Document::parse("test.json", text, true); }

// The message of the Error that `action` throws.
template <typename Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_input);
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("a document gives every kind of value with its path", "[platform][unit]") {
  const Node root =
      yaml("name: a b\nn: 3\nx: 2.5e3\nyes: true\nlist: [1, 2]\nin: {deep: ~}\n").root();
  CHECK(root.at("name").text() == "a b");
  CHECK(root.at("n").integer(0, 10) == 3);
  CHECK(root.at("x").number(0, 1e6) == 2500.0);
  CHECK(root.at("yes").boolean());
  CHECK(root.at("list").items()[1].path() == "list[1]");
  CHECK(root.at("in").path() == "in");
  CHECK_FALSE(root.at("in").find("deep").has_value());
  CHECK_FALSE(root.at("in").find("absent").has_value());
  CHECK(root.keys() == std::vector<std::string>{"name", "n", "x", "yes", "list", "in"});
}

TEST_CASE("a node outlives its document", "[platform][unit]") {
  const Node node = yaml("a: {b: kept}").root().at("a");
  CHECK(node.at("b").text() == "kept");
  CHECK(node.where().file == "test.yaml");
}

TEST_CASE("whole numbers may be written as 1e9 but not as 1.5", "[platform][unit]") {
  const Node root = yaml("a: 1e9\nb: 1.5\nc: 99999999999999999999\nd: -3\ne: '7'\nf: +4\n").root();
  CHECK(root.at("a").integer(0, 2'000'000'000) == 1'000'000'000);
  CHECK(root.at("f").integer(0, 10) == 4);
  for (const char* key : {"b", "c", "d", "e"}) {
    CHECK_THAT(message_of([&] { root.at(key).integer(0, 10); }),
               Contains("expected a whole number from 0 to 10"));
  }
}

TEST_CASE("the largest 64-bit integer is exact and the next is refused", "[platform][unit]") {
  constexpr std::int64_t kMost = 9223372036854775807;
  CHECK(yaml("a: 9223372036854775807").root().at("a").integer(0, kMost) == kMost);
  CHECK_THROWS_AS(yaml("a: 9223372036854775808").root().at("a").integer(0, kMost), Error);
}

TEST_CASE("numbers must be finite and within their range", "[platform][unit]") {
  for (const char* text : {"nan", ".nan", "inf", "-inf", ".inf", "1e400", "0x10", "1_000", "ten"}) {
    const auto document = yaml(std::string("a: ") + text);
    CHECK_THAT(message_of([&] { document.root().at("a").number(0, 1e9); }),
               Contains("test.yaml:1:4: a: expected a number from 0 to 1e+09"));
  }
  CHECK(yaml("a: 0.25").root().at("a").number(0, 1) == 0.25);
}

TEST_CASE("sizes take binary and decimal units", "[platform][unit]") {
  const Node root = yaml(
                        "a: 80GiB\nb: 1.5 TB\nc: 512MiB\nd: 4096\ne: 80 gb\nf: -1GiB\ng: 1e30GB\n"
                        "h: GiB\ni: 0.5KiB\n")
                        .root();
  const Bytes most = gibibytes(1'000'000);
  CHECK(root.at("a").bytes({0}, most) == gibibytes(80));
  CHECK(root.at("b").bytes({0}, most) == Bytes{1'500'000'000'000});
  CHECK(root.at("c").bytes({0}, most) == mebibytes(512));
  CHECK(root.at("d").bytes({0}, most) == Bytes{4096});
  CHECK(root.at("i").bytes({0}, most) == Bytes{512});
  for (const char* key : {"e", "f", "g", "h"}) {
    CHECK_THAT(message_of([&] { root.at(key).bytes({0}, most); }), Contains("such as 80GiB"));
  }
}

TEST_CASE("unknown keys name what is allowed and the nearest", "[platform][unit]") {
  const auto document = yaml("a:\n  global_bach: 3\n");
  CHECK_THAT(message_of([&] {
               document.root().at("a").allow_keys({"global_batch", "steps"});
             }),
             Contains("test.yaml:2:3: a: unknown key 'global_bach'; did you mean 'global_batch'?; "
                      "allowed here: global_batch, steps"));
  CHECK_THAT(message_of([&] { document.root().at("b"); }), Contains("the key 'b' is missing"));
}

TEST_CASE("a choice lists what is allowed", "[platform][unit]") {
  const Node root = yaml("precision: fp32\nlist: []").root();
  CHECK_THAT(
      message_of([&] {
        root.at("precision").choice({"bf16", "f32"});
      }),
      Contains("1:12: precision: expected one of bf16, f32, got 'fp32'; did you mean 'f32'?"));
  CHECK_THAT(message_of([&] { root.at("list").choice({"a"}); }), Contains("got a list"));
}

TEST_CASE("values of the wrong type say what was expected and what was found", "[platform][unit]") {
  const Node root = yaml("number: 5\nmap: {}\nempty:\ntrue_word: yes\nquoted: '5'\n").root();
  CHECK_THAT(message_of([&] { root.at("number").text(); }), Contains("expected text, got '5'"));
  CHECK_THAT(message_of([&] { root.at("map").text(); }), Contains("expected text, got a map"));
  CHECK_THAT(message_of([&] { root.at("number").at("x"); }), Contains("expected a map, got '5'"));
  CHECK_THAT(message_of([&] { root.at("map").items(); }), Contains("expected a list, got a map"));
  CHECK_THAT(message_of([&] { root.at("empty"); }), Contains("3:1: empty: has no value"));
  CHECK_THAT(message_of([&] { root.at("true_word").boolean(); }),
             Contains("expected true or false, got 'yes'"));
  CHECK_THAT(message_of([&] { root.at("quoted").number(0, 9); }), Contains("got the text \"5\""));
}

TEST_CASE("text that is not well formed is refused at its place", "[platform][unit]") {
  struct Case {
    std::string text;
    bool is_json;
    std::string message;
  };
  const std::vector<Case> cases{
      {"", false, "test: the file is empty"},
      {" \n\t\n", true, "test: the file is empty"},
      {"# only a comment\n", false, "nothing but comments"},
      {"~", false, "nothing but comments or null"},
      {"a: [1, 2\n", false, "test:2:1: not valid YAML"},
      {"a: 1\n b: 2\n", false, "test:2:3: not valid YAML"},
      {"a: 1\nb: 2\na: 3\n", false, "test:3:1: the key 'a' is written twice (first on line 1)"},
      {"{\"a\": 1, \"a\": 2}", true, "test:1:10: the key 'a' is written twice"},
      {"a: &x [1]\nb: *x\n", false, "test:1:4: anchors (&name) are not supported"},
      {"a: !!int 3\n", false, "is not supported"},
      {"a: 1\n---\nb: 2\n", false, "test:2:1: a second document starts here"},
      {"? [1]\n: 2\n", false, "test:1:3: a key must be plain text"},
      {std::string("a: x\0y", 6), false, "test:1:5: a NUL byte"},
      {"a: \xff\xfe", false, "test:1:4: not UTF-8"},
      {"a:\n  - \xe2\x82", false, "test:2:5: not UTF-8"},
      {"{\"a\": 1,}", true, "test:1:9: not valid JSON"},
      {"{\"a\": True}", true, "test:1:7: not valid JSON"},
      {"{\n  \"a\": 1", true, "test:2:9: not valid JSON"},
      {"{\"a\": 1} // note", true, "test:1:10: not valid JSON"},
      {"{'a': 1}", true, "test:1:2: not valid JSON"},
      {std::string(100'000, '['), false, "nested deeper than 64 levels"},
      {std::string(65, '[') + std::string(65, ']'), true, "nested deeper than 64 levels"},
  };
  for (const Case& bad : cases) {
    CAPTURE(bad.text.substr(0, 40));
    CHECK_THAT(message_of([&] { Document::parse("test", bad.text, bad.is_json); }),
               Contains(bad.message));
  }
}

TEST_CASE("sixty-four levels are read", "[platform][unit]") {
  const std::string text = std::string(64, '[') + std::string(64, ']');
  CHECK(json(text).root().is_sequence());
}

TEST_CASE("JSON keeps its escapes, tabs and long lines", "[platform][unit]") {
  const Node root =
      json("{\t\"a\":1,\n\t\"b\": \"x\\/y\\u00e9\\ud83d\\ude00\\\\u\",\"c\":-1E+2}").root();
  CHECK(root.at("a").integer(0, 9) == 1);
  CHECK(root.at("b").text() == "x/y\u00e9\U0001f600\\u");
  CHECK(root.at("c").number(-1000, 0) == -100.0);
}

TEST_CASE("files that can't be read are errors that name them", "[platform][unit]") {
  const auto folder = offstage::temporary_path("document");
  std::filesystem::create_directories(folder);
  CHECK_THAT(message_of([&] { Document::load((folder / "absent.yaml").string()); }),
             Contains("absent.yaml: no such file"));
  CHECK_THAT(message_of([&] { Document::load(folder.string()); }), Contains("this is a folder"));
  const auto large = folder / "large.yaml";
  std::ofstream(large).close();
  std::filesystem::resize_file(large, 65 * 1024 * 1024);
  CHECK_THAT(message_of([&] { Document::load(large.string()); }),
             Contains("large.yaml: larger than 64 MiB"));
  std::ofstream(folder / "good.json") << "{\"a\": 1}";
  CHECK(Document::load((folder / "good.json").string()).root().at("a").integer(1, 1) == 1);
  std::filesystem::remove_all(folder);
}
