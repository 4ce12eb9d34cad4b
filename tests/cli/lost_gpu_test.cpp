#include <string>

#include <catch2/catch.hpp>

#include "run_program.h"

// A GPU that dies: predicted by `simulate`, borne by `train`.

using namespace offstage::tests;
using Catch::Contains;
using nlohmann::json;

namespace {

// Two virtual GPUs, eight sequences a step, eight steps.
std::string config(const std::string& train, const std::string& more) {
  std::string text = small_config();
  const std::string steps = "  steps: 3\n";
  text.replace(text.find(steps), steps.size(), "  steps: 8\n" + train);
  return text + more;
}

const char* const kLoss = "disturbances: {lost_gpu: {gpu: gpu1, step: 6}}\n";

}  // namespace

TEST_CASE("simulate says what the loss of a GPU costs", "[cli][sim]") {
  const Workspace workspace;
  write_small_config(workspace);
  workspace.write("run.yaml", config("  checkpoint: {directory: run, every: 2}\n", kLoss));
  const Outcome outcome = workspace.run({"simulate", "run.yaml", "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  const json object = outcome.json();
  const json lost = object["lost_gpu"];
  const auto before = object["step_s"].get<double>();
  const auto after = lost["step_s_after"].get<double>();
  CHECK(lost["gpu"] == "gpu1");
  CHECK(lost["step_s_before"] == before);
  CHECK(after > before);  // half the cores
  // The newest checkpoint is of step 4: steps 5 and 6 are done again, and 7 and 8 are left.
  CHECK(lost["checkpoint"] == 4);
  CHECK(lost["steps_lost"] == 2);
  CHECK(lost["time_lost_s"].get<double>() == Approx(2 * before));
  CHECK(lost["run_s"].get<double>() == Approx(6 * before + 4 * after));
  CHECK(lost["run_s_undisturbed"].get<double>() == Approx(8 * before));
  CHECK(lost["shares_after"].size() == 1);
  CHECK_THAT(workspace.run({"simulate", "run.yaml"}).out,
             Contains("gpu1 is lost in step 6") && Contains("since the checkpoint of step 4"));

  workspace.write("run.yaml", config("", kLoss));
  CHECK_THAT(workspace.run({"simulate", "run.yaml"}).out, Contains("it ends here"));
}
