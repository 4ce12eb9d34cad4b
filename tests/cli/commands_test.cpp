#include <filesystem>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "bad_input.h"
#include "run_program.h"
#include "tests/platform/small_machine.h"

using namespace offstage::tests;
using Catch::Contains;
using nlohmann::json;

TEST_CASE("help is there for the program and every command", "[cli][unit]") {
  const Workspace workspace;
  CHECK_THAT(workspace.run({"--help"}).out, Contains("simulate") && Contains("Exit status"));
  CHECK_THAT(workspace.run({"--version"}).out, Contains("offstage 0."));
  for (const char* command :
       {"platform", "workload", "plan", "simulate", "train", "calibrate", "compare"}) {
    CAPTURE(command);
    const Outcome help = workspace.run({command, "--help"});
    CHECK(help.status == 0);
    CHECK_THAT(help.out, Contains("Example") && Contains("--json"));
  }
}

TEST_CASE("a command line that makes no sense is bad usage", "[cli][unit]") {
  const Workspace workspace;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {},
           {"plann", "run.yaml"},
           {"plan"},
           {"plan", "run.yaml", "--jason"},
           {"plan", "a.yaml", "b.yaml"},
           {"simulate", "run.yaml", "--steps", "0"},
           {"simulate", "run.yaml", "--steps", "many"},
           {"simulate", "run.yaml", "--policy"},
           {"train", "run.yaml", "--steps", "-3"},
           {"compare", "a.json"},
           {"compare", "a.json", "b.json", "--tolerance", "-1"},
           {"platform"},
           {"platform", "dgx-a100-40", "--virtual-gpus", "2"},
           {"platform", "host", "--virtual-gpus", "0"},
           {"platform", "host", "--gpu-memory", "much"},
           {"platform", "dgx-a100-40", "--data", "no/such/folder"},
           {"workload", "gpt2", "--precision", "fp8"},
           {"workload", "gpt2", "--micro-batch", "0"},
       }) {
    CAPTURE(arguments);
    check_refused(workspace.run(arguments), {});
  }
}

TEST_CASE("a platform is shown, listed and printed as JSON", "[cli][unit]") {
  const Workspace workspace;
  const Outcome text = workspace.run({"platform", "dgx-a100-40"});
  CHECK(text.status == 0);
  CHECK_THAT(text.out, Contains("gpu7") && Contains("GB/s"));
  CHECK_THAT(workspace.run({"platform", "--list"}).out, Contains("dgx-a100-80\n"));
  const json machine = workspace.run({"platform", "dgx-a100-40", "--json"}).json();
  CHECK(machine["gpus"].size() == 8);
  workspace.write("machine.yaml", offstage::platform::small_node());
  CHECK(workspace.run({"platform", "machine.yaml", "--json"}).json()["gpus"].size() == 2);
  // As a run config changes it.
  workspace.write("run.yaml", "platform: {name: machine.yaml, gpus: [gpu1]}\n");
  const json changed = workspace.run({"platform", "run.yaml", "--json"}).json();
  REQUIRE(changed["gpus"].size() == 1);
  CHECK(changed["gpus"][0]["name"] == "gpu1");
}

TEST_CASE("the host is shown as the virtual GPUs asked for", "[cli][unit]") {
  const Workspace workspace;
  const json machine =
      workspace.run({"platform", "host", "--virtual-gpus", "3", "--gpu-memory", "16MiB", "--json"})
          .json();
  CHECK(machine["gpus"].size() == 3);
}

TEST_CASE("a workload's parameters are those of the model", "[cli][unit]") {
  const Workspace workspace;
  // GPT-2 small: 124,439,808 parameters, the count of the published checkpoint.
  const json model = workspace.run({"workload", "gpt2", "--json"}).json();
  CHECK(model["parameters"] == 124439808);
  CHECK(model["layers"].size() == 14);  // 12 blocks, embedding and head
  CHECK(model["flops_per_token"].get<double>() > 0.0);
  CHECK_THAT(workspace.run({"workload", "gpt2"}).out, Contains("124"));
}

TEST_CASE("a run config's workload is shown at its sequence length", "[cli][unit]") {
  const Workspace workspace;
  write_small_config(workspace);
  const json model = workspace.run({"workload", "run.yaml", "--json"}).json();
  CHECK(model["sequence_length"] == 32);
}

TEST_CASE("standard output that can't be written is a failure with a message", "[cli][unit]") {
  const Workspace workspace;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"workload", "gpt2"}, {"--help"}}) {
    const Outcome outcome = workspace.run(arguments, "/dev/full");
    CHECK(outcome.ended);
    CHECK(outcome.status == 3);
    CHECK_THAT(outcome.err, Contains("standard output"));
  }
}

namespace {

// A trace of one step: a fetch of `fetch_us`, then a forward of `forward_us`.
std::string trace(double fetch_us, double forward_us, const std::string& hash = "h") {
  const auto task = [](int id, const std::string& kind, double start, double length) {
    return json{{"ph", "X"},
                {"pid", 1},
                {"tid", 1},
                {"name", kind + " S0 gpu0"},
                {"ts", start},
                {"dur", length},
                {"args", {{"task", id}, {"kind", kind}, {"step", 0}}}};
  };
  return json{
      {"otherData", {{"offstage_trace", 1}, {"backend", "test"}, {"plan_hash", hash}}},
      {"traceEvents", {task(0, "fetch", 0, fetch_us), task(1, "forward", fetch_us, forward_us)}}}
      .dump();
}

}  // namespace

TEST_CASE("compare says how far two traces are apart", "[cli][unit]") {
  const Workspace workspace;
  workspace.write("a.json", trace(100, 300));
  workspace.write("b.json", trace(200, 300));
  const Outcome outcome = workspace.run({"compare", "a.json", "b.json", "--json"});
  CHECK(outcome.status == 0);
  // Steps of 400 and 500 us: 100 / 500. Fetches of 100 and 200: 100 / 200.
  const json object = outcome.json();
  CHECK(object["step_error"].get<double>() == Approx(0.2));
  REQUIRE(object["by_kind"].size() == 2);
  CHECK(object["by_kind"][0]["kind"] == "fetch");
  CHECK(object["by_kind"][0]["a_s"].get<double>() == Approx(100e-6));
  CHECK(object["by_kind"][0]["b_s"].get<double>() == Approx(200e-6));
  CHECK(object["by_kind"][0]["error"].get<double>() == Approx(0.5));
  CHECK_THAT(workspace.run({"compare", "a.json", "b.json"}).out, Contains("fetch"));
}

TEST_CASE("compare answers no outside the tolerance", "[cli][unit]") {
  const Workspace workspace;
  workspace.write("a.json", trace(100, 300));
  workspace.write("b.json", trace(200, 300));
  // The step is off by a fifth.
  CHECK(workspace.run({"compare", "a.json", "b.json", "--tolerance", "0.21"}).status == 0);
  const Outcome outside =
      workspace.run({"compare", "a.json", "b.json", "--tolerance", "0.19", "--json"});
  CHECK(outside.status == 1);
  CHECK(outside.json()["within_tolerance"] == false);
}

TEST_CASE("compare remarks on traces of different plans", "[cli][unit]") {
  const Workspace workspace;
  workspace.write("a.json", trace(100, 300, "one"));
  workspace.write("b.json", trace(100, 300, "two"));
  CHECK_THAT(workspace.run({"compare", "a.json", "b.json"}).err, Contains("different plans"));
}

TEST_CASE("another folder of data is used when it is named", "[cli][unit]") {
  const Workspace workspace;
  std::filesystem::create_directories(workspace.folder() / "platform" / "catalog");
  workspace.write("platform/catalog/small.yaml", offstage::platform::small_node());
  const Outcome listed = workspace.run({"platform", "--list", "--data", "."});
  CHECK(listed.out == "small\nhost\n");
}
