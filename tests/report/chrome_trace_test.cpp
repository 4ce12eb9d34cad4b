#include "report/chrome_trace.h"

#include <set>
#include <sstream>
#include <string>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "platform/error.h"
#include "traced_run.h"

using namespace offstage;
using nlohmann::json;
using tests::make_traced_run;
using tests::trace_text;

namespace {

json events(const std::string& text, const std::string& phase) {
  json found = json::array();
  const json document = json::parse(text);
  for (const json& event : document["traceEvents"]) {
    if (event["ph"] == phase) found.push_back(event);
  }
  return found;
}

}  // namespace

TEST_CASE("a trace has a row for each engine, named by device and kind", "[report][unit]") {
  const auto run = make_traced_run();
  std::set<std::string> groups, rows;
  for (const json& event : events(trace_text(run.window(), run.machine), "M")) {
    const std::string what = event["name"];
    if (what == "process_name") groups.insert(event["args"]["name"]);
    if (what == "thread_name") {
      rows.insert(std::to_string(event["pid"].get<int>()) + " " +
                  event["args"]["name"].get<std::string>());
    }
  }
  CHECK(groups == std::set<std::string>{"gpu0", "gpu1", "memory", "links"});
  CHECK(rows == std::set<std::string>{"1 h2d", "1 collective", "2 collective", "1 compute"});
}

TEST_CASE("a collective stands on the row of each engine it holds", "[report][unit]") {
  const auto run = make_traced_run();
  const json tasks = events(trace_text(run.window(), run.machine), "X");
  REQUIRE(tasks.size() == 4);  // three tasks, one of them on two engines
  CHECK(tasks[1]["name"] == "all_gather weights S3 all gpus");
  CHECK(tasks[2]["name"] == tasks[1]["name"]);
  CHECK(tasks[1]["pid"] == 1);
  CHECK(tasks[2]["pid"] == 2);
}

TEST_CASE("a task carries its place, its step and its size", "[report][unit]") {
  const auto run = make_traced_run();
  const json tasks = events(trace_text({run.graph, run.trace, run.costs, 7, {}}, run.machine), "X");
  CHECK(tasks[0]["name"] == "fetch weights S3 gpu0");
  CHECK(tasks[0]["args"] == json::parse(R"({"task": 0, "kind": "fetch", "step": 7, "submodel": 3,
                                            "payload": "weights", "bytes": 2000})"));
  CHECK(tasks[3]["name"] == "forward S3 m1 gpu0");
  CHECK(tasks[3]["args"]["micro_batch"] == 1);
  // 2 ms to 3 ms, in microseconds.
  CHECK(tasks[3]["ts"] == 2000.0);
  CHECK(tasks[3]["dur"] == 1000.0);
}

TEST_CASE("every pool and every link has a counter", "[report][unit]") {
  const auto run = make_traced_run();
  std::set<std::string> names;
  json last_cores;
  for (const json& event : events(trace_text(run.window(), run.machine), "C")) {
    names.insert(event["name"]);
    if (event["name"] == "link cores" && event["ts"] == 2000.0) last_cores = event["args"]["cores"];
  }
  CHECK(names == std::set<std::string>{"memory gpu0", "memory gpu1", "memory host0", "link pcie",
                                       "link cores"});
  CHECK(last_cores == 1.5);
}

TEST_CASE("neighbouring tasks of a row do not overlap by a rounding error", "[report][unit]") {
  auto run = make_traced_run();
  // Thirds of a nanosecond: start and length rounded apart would give 1.333 -> 1 and 1.333 -> 1,
  // then 2.667 -> 3; and 0.667 -> 1 twice would reach 2, beyond the next start at 1.333 -> 1.
  run.trace.tasks = {{{0.0}, {0.667e-9}}, {{0.667e-9}, {1.333e-9}}, {{1.333e-9}, {2.6e-9}}};
  const json tasks = events(trace_text(run.window(), run.machine), "X");
  const auto end = [](const json& task) {
    return task["ts"].get<double>() + task["dur"].get<double>();
  };
  CHECK(end(tasks[0]) == Approx(tasks[1]["ts"].get<double>()));
  CHECK(end(tasks[1]) == Approx(tasks[3]["ts"].get<double>()));
}

TEST_CASE("the same run gives the same bytes", "[report][unit]") {
  CHECK(trace_text(make_traced_run().window(), make_traced_run().machine) ==
        trace_text(make_traced_run().window(), make_traced_run().machine));
}

TEST_CASE("names with quotes and backslashes stay well-formed", "[report][unit]") {
  auto run = make_traced_run();
  run.machine.name = "a \"quoted\" \\ name";
  run.machine.links[0].name = "pcie \"x16\"";
  CHECK(json::parse(trace_text(run.window(), run.machine))["otherData"]["platform"] ==
        run.machine.name);
}

TEST_CASE("a trace that can't be written is an error that names the file", "[report][unit]") {
  const auto run = make_traced_run();
  for (const std::string file : {"/dev/full", "no/such/folder/trace.json"}) {
    try {
      report::write_chrome_trace(run.window(), run.machine,
                                 {.file = file, .backend = "simulated", .plan_hash = ""});
      FAIL("nothing was thrown for " << file);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::io);
      CHECK_THAT(error.what(), Catch::Contains(file));
    }
  }
}
