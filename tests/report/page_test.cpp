#include "report/page.h"

#include <string>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "platform/error.h"
#include "report/page_json.h"
#include "traced_run.h"

using namespace offstage;
using nlohmann::json;
using report::Page;

namespace {

// What the page's scripts will read.
json data_of(const std::string& html) {
  const std::string open = R"(<script type="application/json" id="report">)";
  const std::size_t begin = html.find(open) + open.size();
  return json::parse(html.substr(begin, html.find("</script>", begin) - begin));
}

}  // namespace

TEST_CASE("nothing in a page's data can end the element it stands in", "[report][unit]") {
  const std::string bad = "</script><script>alert(1)</script><!-- \xff";
  Page page{.title = bad};
  page.sections.emplace_back(
      report::TableSection{.title = bad, .columns = {{bad}}, .rows = {{bad}}});
  const std::string html = report::page_html(page);
  CHECK(html.find("<script>alert") == std::string::npos);
  // Bytes that are no UTF-8 are replaced, all else arrives.
  const auto title = data_of(html)["sections"][0]["title"].get<std::string>();
  CHECK(title.starts_with("</script><script>alert(1)</script><!-- "));
}

TEST_CASE("a page carries its libraries and names no address to load from", "[report][unit]") {
  const std::string html = report::page_html(Page{.title = "empty"});
  CHECK(html.find("Chart.js v3") != std::string::npos);
  CHECK(html.find("d3js.org v5") != std::string::npos);
  for (const char* loads : {" src=", "@import", "url(http", "<iframe"}) {
    CAPTURE(loads);
    CHECK(html.substr(0, html.find("<script>")).find(loads) == std::string::npos);
  }
  CHECK(html.find("default-src 'none'") != std::string::npos);
}

TEST_CASE("a timeline's tasks are columns of differences", "[report][unit]") {
  // Starts 0, 1 and 2 ms after each other; each task needs and waits for the one before it, which
  // is one away. The gather stands on two rows.
  const auto run = tests::make_traced_run();
  const json timeline =
      report::timeline_json(report::make_timeline("a", run.window(), run.machine, {}));
  const json& tasks = timeline["tasks"];
  CHECK(tasks["start"] == json({0, 1'000'000, 1'000'000}));
  CHECK(tasks["length"] == json({1'000'000, 1'000'000, 1'000'000}));
  CHECK(tasks["row_count"] == json({1, 2, 1}));
  CHECK(tasks["row"] == json({0, 1, 2, 3}));
  CHECK(tasks["after_count"] == json({0, 1, 1}));
  CHECK(tasks["after"] == json({1, 1}));
  CHECK(tasks["cause"] == json({0, 1, 1}));
  CHECK(tasks["micro_batch"] == json({-1, -1, 1}));
  CHECK(tasks["gpu"] == json({0, -1, 0}));
  CHECK(timeline["sizes"] == json({2000, 4000, 0}));
  CHECK(timeline["chain"] == json({0, 1, 1}));
}

TEST_CASE("a page that can't be written is an error of the file", "[report][unit]") {
  try {
    report::write_page(Page{.title = "a"}, "/no/such/folder/report.html");
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::io);
    CHECK(std::string(error.what()).find("/no/such/folder/report.html") != std::string::npos);
  }
}
