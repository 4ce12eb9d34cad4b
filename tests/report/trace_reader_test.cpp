#include "report/trace_reader.h"

#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/error.h"
#include "traced_run.h"

using namespace offstage;
using tests::make_traced_run;
using tests::trace_text;
using tests::write_temporary;

TEST_CASE("a trace read back holds each task once, with its times", "[report][unit]") {
  const auto run = make_traced_run();
  const auto contents = report::read_chrome_trace(
      write_temporary("whole.json", trace_text(run.window(), run.machine)));
  CHECK(contents.backend == "simulated");
  CHECK(contents.plan_hash == "abc");
  REQUIRE(contents.tasks.size() == 3);
  CHECK(contents.tasks[1].name == "all_gather weights S3 all gpus");
  CHECK(contents.tasks[1].kind == "all_gather");
  CHECK(contents.tasks[1].start.value == Approx(1e-3));
  CHECK(contents.tasks[1].duration.value == Approx(1e-3));
  CHECK(contents.tasks[2].id == 2);
}

TEST_CASE("a file that is no trace is refused with place and remedy", "[report][unit]") {
  struct BadTrace {
    std::string name, text, fragment;
  };
  const auto run = make_traced_run();
  const std::string good = trace_text(run.window(), run.machine);
  const std::string header = R"({"otherData":{"offstage_trace":1},"traceEvents":[)";
  const std::vector<BadTrace> table{
      {"empty.json", "", "empty"},
      {"truncated.json", good.substr(0, good.size() / 2), "no well-formed JSON"},
      {"list.json", "[1, 2]", "not a trace of offstage"},
      {"number.json", "3", "not a trace of offstage"},
      {"other.json", R"({"traceEvents":[]})", "not a trace of offstage"},
      {"version.json", R"({"otherData":{"offstage_trace":2},"traceEvents":[]})",
       "not a trace of offstage"},
      {"no_tasks.json", header + "]}", "holds no task"},
      {"no_arguments.json", header + R"({"ph":"X","name":"a","ts":1,"dur":1}]})", "lacks"},
      {"text_time.json",
       header + R"({"ph":"X","name":"a","ts":"1","dur":1,"args":{"kind":"a","step":0,"task":0}}]})",
       "lacks"},
      {"negative.json",
       header + R"({"ph":"X","name":"a","ts":1,"dur":-1,"args":{"kind":"a","step":0,"task":0}}]})",
       "negative"},
  };
  for (const BadTrace& bad : table) {
    INFO(bad.name);
    try {
      report::read_chrome_trace(write_temporary(bad.name, bad.text));
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_input);
      CHECK_THAT(error.what(), Catch::Contains(bad.name) && Catch::Contains(bad.fragment));
    }
  }
}

TEST_CASE("a missing trace and a folder are refused", "[report][unit]") {
  CHECK_THROWS_WITH(report::read_chrome_trace("no/such/trace.json"),
                    Catch::Contains("no/such/trace.json") && Catch::Contains("check the path"));
  CHECK_THROWS_WITH(report::read_chrome_trace("."), Catch::Contains("check the path"));
}

TEST_CASE("a syntax error is placed by line and column", "[report][unit]") {
  const std::string file = write_temporary("place.json", "{\n  \"a\": nope\n}");
  // Line 2; the parser notices at the second letter, "no" being no start of null.
  CHECK_THROWS_WITH(report::read_chrome_trace(file), Catch::Contains("place.json:2:9"));
}
