#include <cstdint>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "run_program.h"

// Trainings that lose a virtual GPU on the way.

using namespace offstage::tests;
using Catch::Contains;
using nlohmann::json;

namespace {

// `gpus` virtual GPUs, twelve sequences a step, eight steps.
void write_run(const Workspace& workspace, const std::string& name, const std::string& train,
               const std::string& more, int gpus) {
  std::string text = small_config();
  const auto replace = [&text](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("  steps: 3\n", "  steps: 8\n" + train);
  replace("platform: machine.yaml",
          fmt::format("platform: {{name: machine.yaml, virtual_gpus: {}}}", gpus));
  replace("  global_batch: 8\n", "  global_batch: 12\n");
  workspace.write(name, text + more);
}

const char* const kLoss = "disturbances: {lost_gpu: {gpu: gpu1, step: 6}}\n";

}  // namespace

TEST_CASE("a training goes on without a GPU that dies, as if stopped and planned anew",
          "[cli][exec]") {
  const int gpus = GENERATE(2, 3);
  const Workspace workspace;
  write_small_config(workspace);
  write_run(workspace, "run.yaml", "  checkpoint: {directory: run, every: 2}\n", kLoss, gpus);
  const Outcome outcome = workspace.run({"train", "run.yaml", "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  const json object = outcome.json();
  CHECK(object["steps_done"] == 8);
  REQUIRE(object["lost_gpus"].size() == 1);
  CHECK(object["lost_gpus"][0]["gpu"] == "gpu1");
  CHECK_THAT(object["lost_gpus"][0]["error"].get<std::string>(),
             Contains("gpu1 is lost") && Contains("step 6"));
  // The pools of the GPUs left and of the CPU.
  CHECK(object["memory"].size() == static_cast<std::size_t>(gpus));
  CHECK_THAT(outcome.err, Contains("planning for the other"));
  CHECK_THAT(workspace.read("run/log.txt"), Contains("goes on without gpu1"));
  CHECK_THAT(workspace.read("run/metrics.jsonl"), Contains("\"lost_gpu\""));

  // The same by hand: up to the checkpoint it went on from, then with its second plan.
  const auto resumed = object["resumed_from"].get<std::int64_t>();
  CHECK(resumed < 6);
  write_run(workspace, "hand.yaml", "  checkpoint: {directory: hand}\n", "", gpus);
  if (resumed > 0) {
    REQUIRE(workspace.run({"train", "hand.yaml", "--steps", fmt::to_string(resumed)}).status == 0);
  }
  const std::string last = "step-0000000008/";
  const Outcome by_hand =
      workspace.run({"train", "hand.yaml", "--plan", "run/" + last + "plan.json", "--json"});
  INFO(by_hand.err);
  REQUIRE(by_hand.status == 0);
  CHECK(by_hand.json()["plan_hash"] == object["plan_hash"]);
  CHECK(workspace.read("hand/" + last + "master.f32") ==
        workspace.read("run/" + last + "master.f32"));
}

TEST_CASE("a GPU that dies before the first checkpoint costs all steps", "[cli][exec]") {
  const Workspace workspace;
  write_small_config(workspace);
  write_run(workspace, "run.yaml", "  checkpoint: {directory: run}\n", kLoss, 2);
  const Outcome outcome = workspace.run({"train", "run.yaml", "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.status == 0);
  CHECK(outcome.json()["resumed_from"] == 0);
  CHECK(outcome.json()["steps_done"] == 8);
}

TEST_CASE("without checkpoints a GPU that dies ends the training", "[cli][exec]") {
  const Workspace workspace;
  write_small_config(workspace);
  write_run(workspace, "run.yaml", "", kLoss, 2);
  const Outcome outcome = workspace.run({"train", "run.yaml"});
  CHECK(outcome.status == 3);
  CHECK_THAT(outcome.err, Contains("gpu1 is lost"));
}
