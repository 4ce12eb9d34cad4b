#include <string>

#include <catch2/catch.hpp>

#include "run_program.h"

using namespace offstage::tests;
using Catch::Contains;
using nlohmann::json;

TEST_CASE("train carries out the plan it made and reports on it", "[cli][sim][exec]") {
  const Workspace workspace;
  write_small_config(workspace);
  const Outcome outcome = workspace.run(
      {"train", "run.yaml", "--steps", "5", "--out", "plan.json", "--trace", "m.json", "--json"});
  INFO(outcome.err);
  CHECK(outcome.status == 0);
  const json object = outcome.json();
  CHECK(object["steps"] == 5);
  CHECK(object["loss"].size() == 5);
  CHECK(object["step_s_median"].get<double>() > 0.0);
  CHECK(object["plan_hash"] == json::parse(workspace.read("plan.json"))["plan_hash"]);
  for (const json& pool : object["memory"]) {
    CHECK(pool["peak_bytes"].get<std::int64_t>() <= pool["planned_bytes"].get<std::int64_t>());
  }

  // The measured trace has every task of the simulated one.
  CHECK(workspace.run({"simulate", "plan.json", "--steps", "5", "--trace", "s.json"}).status == 0);
  const json compared = workspace.run({"compare", "s.json", "m.json", "--json"}).json();
  CHECK(compared["only_in_a"] == 0);
  CHECK(compared["only_in_b"] == 0);
  CHECK(compared["by_kind"].size() >= 5);
}

TEST_CASE("train takes a plan made earlier", "[cli][sim][exec]") {
  const Workspace workspace;
  write_small_config(workspace);
  CHECK(workspace.run({"plan", "run.yaml", "--out", "plan.json"}).status == 0);
  const Outcome outcome = workspace.run({"train", "run.yaml", "--plan", "plan.json"});
  INFO(outcome.err);
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, Contains("trained 3 steps"));
}

TEST_CASE("an error of the executor becomes the status of train", "[cli][sim][exec]") {
  const Workspace workspace;
  write_small_config(workspace);
  workspace.write("text.txt", "short");  // shorter than one sequence of 32 tokens
  const Outcome outcome = workspace.run({"train", "run.yaml"});
  CHECK((outcome.status == 2 || outcome.status == 3));
  CHECK_THAT(outcome.err, Contains("text.txt"));
}
