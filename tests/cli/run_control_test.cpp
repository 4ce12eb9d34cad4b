#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "run_program.h"

// Every command that steers a training, and every rail that guards it, on real runs.

using namespace offstage::tests;
using Catch::Contains;
using nlohmann::json;

namespace {

// A training that goes on until it is stopped.
constexpr int kEndless = 1'000'000'000;

void write_run(const Workspace& workspace, const std::string& more) {
  write_small_config(workspace);
  std::string config = small_config();
  const std::string steps = "  steps: 3\n";
  config.replace(config.find(steps), steps.size(), more);
  workspace.write("run.yaml", config);
}

void write_endless_run(const Workspace& workspace, const std::string& checkpoint = "") {
  write_run(workspace,
            fmt::format("  steps: {}\n  checkpoint: {{directory: run{}}}\n", kEndless, checkpoint));
}

// Fails the test when it does not come true in two minutes, a hundred times what it takes.
void wait_until(const std::string& what, const std::function<bool()>& condition) {
  for (int i = 0; i < 12000; ++i) {
    if (condition()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  FAIL("waited in vain until " << what);
}

json status_of(const Workspace& workspace) {
  return workspace.run({"status", "run", "--json"}).json();
}

std::int64_t step_of(const Workspace& workspace) {
  return status_of(workspace).value("step", std::int64_t{0});
}

void wait_until_training(const Workspace& workspace) {
  wait_until("the training is some steps on", [&] {
    const json status = workspace.has("run") ? status_of(workspace) : json::object();
    return status.value("state", "") == "running" && status.value("step", 0) > 2;
  });
}

}  // namespace

TEST_CASE("status shows engines, memory and steps of a training that runs", "[cli][exec]") {
  const Workspace workspace;
  write_endless_run(workspace);
  Running training = workspace.start({"train", "run.yaml"}, "train");
  wait_until_training(workspace);
  const json status = status_of(workspace);
  CHECK(status["state"] == "running");
  CHECK(status["steps"] == kEndless);
  CHECK(status["loss"].get<double>() > 0.0);
  CHECK(status["predicted_step_s"].get<double>() > 0.0);
  // Two virtual GPUs with four engines each, and the socket's optimizer.
  CHECK(status["engines"].size() == 9);
  for (const json& pool : status["memory"]) {
    CHECK(pool["live_bytes"] <= pool["peak_bytes"]);
    CHECK(pool["peak_bytes"] <= pool["planned_bytes"]);
  }
  CHECK_THAT(workspace.run({"status", "run"}).out, Contains("gpu0.compute"));
  // Only its owner may ask.
  struct stat socket {};
  CHECK(stat((workspace.folder() / "run/control.sock").c_str(), &socket) == 0);
  CHECK((socket.st_mode & 0777) == 0600);
  REQUIRE(workspace.run({"stop", "run"}).status == 0);
  CHECK(training.wait().status == 0);
}

TEST_CASE("a paused training rests until it is told to go on", "[cli][exec]") {
  const Workspace workspace;
  write_endless_run(workspace);
  Running training = workspace.start({"train", "run.yaml", "--json"}, "train");
  wait_until_training(workspace);
  CHECK(workspace.run({"pause", "run"}).status == 0);
  wait_until("it is paused", [&] { return status_of(workspace)["state"] == "paused"; });
  const std::int64_t rests_at = step_of(workspace);
  CHECK(step_of(workspace) == rests_at);
  // At rest a checkpoint is written before the answer comes.
  const json written = workspace.run({"checkpoint", "run", "--json"}).json();
  CHECK(written["step"] == rests_at);
  CHECK(workspace.has(fmt::format("run/step-{:010}/manifest.json", rests_at)));
  CHECK(step_of(workspace) == rests_at);
  CHECK(workspace.run({"resume", "run"}).status == 0);
  wait_until("it goes on", [&] { return step_of(workspace) > rests_at; });
  // A paused training can be stopped.
  CHECK(workspace.run({"pause", "run"}).status == 0);
  REQUIRE(workspace.run({"stop", "run"}).status == 0);
  const Outcome outcome = training.wait();
  CHECK(outcome.status == 0);
  CHECK(outcome.json()["stopped"] == true);
}

TEST_CASE("a checkpoint may be asked for while the training goes on", "[cli][exec]") {
  const Workspace workspace;
  write_endless_run(workspace);
  // Also of a training that was resumed.
  REQUIRE(workspace.run({"train", "run.yaml", "--steps", "2"}).status == 0);
  Running training = workspace.start({"train", "run.yaml"}, "train");
  wait_until_training(workspace);
  const json asked = workspace.run({"checkpoint", "run", "--json"}).json();
  const std::string manifest =
      fmt::format("run/step-{:010}/manifest.json", asked["step"].get<std::int64_t>());
  wait_until("it is written", [&] { return workspace.has(manifest); });
  REQUIRE(workspace.run({"stop", "run"}).status == 0);
  CHECK(training.wait().status == 0);
}

TEST_CASE("SIGTERM and SIGINT end a training after its step, with a checkpoint", "[cli][exec]") {
  const int signal = GENERATE(SIGTERM, SIGINT);
  const Workspace workspace;
  write_endless_run(workspace);
  Running training = workspace.start({"train", "run.yaml", "--json"}, "train");
  wait_until_training(workspace);
  training.send(signal);
  const Outcome outcome = training.wait();
  INFO(outcome.err);
  CHECK(outcome.status == 0);
  const json object = outcome.json();
  CHECK(object["stopped"] == true);
  CHECK(workspace.has(object["checkpoint"].get<std::string>() + "/manifest.json"));
  // Nobody listens any more, and status tells of the past.
  CHECK(status_of(workspace)["state"] == "ended");
  CHECK(workspace.run({"pause", "run"}).status == 2);
}

TEST_CASE("a second training in a folder is refused while the first lives", "[cli][exec]") {
  const Workspace workspace;
  write_endless_run(workspace);
  Running training = workspace.start({"train", "run.yaml"}, "train");
  wait_until_training(workspace);
  const Outcome second = workspace.run({"train", "run.yaml"});
  CHECK(second.status == 2);
  CHECK_THAT(second.err, Contains("trains here"));
  // Killed, it leaves lock and socket behind; neither keeps the next one out.
  training.send_to_group(SIGKILL);
  training.wait();
  CHECK(workspace.has("run/lock"));
  CHECK(workspace.has("run/control.sock"));
  CHECK(workspace.run({"status", "run"}).status == 0);
  Running next = workspace.start({"train", "run.yaml"}, "next");
  wait_until_training(workspace);
  REQUIRE(workspace.run({"stop", "run"}).status == 0);
  CHECK(next.wait().status == 0);
}

TEST_CASE("a failing disk keeps the earlier checkpoint and the training", "[cli][exec]") {
  const Workspace workspace;
  write_run(workspace, "  steps: 6\n  checkpoint: {directory: run, every: 2}\n");
  CHECK(workspace.run({"train", "run.yaml", "--steps", "2"}).status == 0);
  CHECK(workspace.has("run/step-0000000002/manifest.json"));
  // Files of 64 KiB at most, which each state file of this model exceeds (0.2 M parameters).
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{.rlim_cur = 65536, .rlim_max = before.rlim_max};
  CHECK(workspace.run({"plan", "run.yaml", "--out", "plan.json"}).status == 0);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  Running training = workspace.start({"train", "run.yaml", "--plan", "plan.json", "--json"}, "t");
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  const Outcome outcome = training.wait();
  INFO(outcome.err);
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.err, Contains("checkpoint of step 4 can't be written"));
  CHECK_THAT(outcome.err, Contains("master.f32"));
  CHECK(outcome.json()["steps_done"] == 6);
  CHECK(workspace.has("run/step-0000000002/manifest.json"));
  CHECK_FALSE(workspace.has("run/step-0000000004"));
  CHECK_FALSE(workspace.has("run/step-0000000004.part"));
}

TEST_CASE("a folder that can't be made ends the training before it begins", "[cli][exec]") {
  const Workspace workspace;
  write_run(workspace, "  steps: 6\n  checkpoint: {directory: text.txt/run}\n");
  const Outcome outcome = workspace.run({"train", "run.yaml"});
  CHECK(outcome.status == 3);
  CHECK_THAT(outcome.err, Contains("text.txt/run"));
}

TEST_CASE("damaged checkpoints are named and passed over", "[cli][exec]") {
  const Workspace workspace;
  write_run(workspace, "  steps: 4\n  checkpoint: {directory: run, every: 2}\n");
  CHECK(workspace.run({"train", "run.yaml"}).status == 0);
  const std::string newest = "run/step-0000000004/";
  std::string weights = workspace.read(newest + "master.f32");
  SECTION("a byte has flipped") {
    weights[weights.size() / 2] = static_cast<char>(weights[weights.size() / 2] ^ 1);
    workspace.write(newest + "master.f32", weights);
  }
  SECTION("a file is truncated") {
    workspace.write(newest + "master.f32", weights.substr(0, weights.size() - 1));
  }
  SECTION("the manifest has changed") {
    std::string manifest = workspace.read(newest + "manifest.json");
    manifest.replace(manifest.find("\"step\": 4"), 9, "\"step\": 3");
    workspace.write(newest + "manifest.json", manifest);
  }
  const Outcome outcome = workspace.run({"train", "run.yaml", "--json"});
  INFO(outcome.err);
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.err, Contains("passes over a checkpoint") && Contains("step-0000000004"));
  CHECK(outcome.json()["resumed_from"] == 2);
  CHECK(outcome.json()["steps_done"] == 4);
}

TEST_CASE("a checkpoint of another training is refused, --restart sets it aside", "[cli][exec]") {
  const Workspace workspace;
  write_run(workspace, "  steps: 2\n  checkpoint: {directory: run}\n");
  CHECK(workspace.run({"train", "run.yaml"}).status == 0);
  write_run(workspace, "  steps: 2\n  seed: 5\n  checkpoint: {directory: run}\n");
  const Outcome other = workspace.run({"train", "run.yaml"});
  CHECK(other.status == 2);
  CHECK_THAT(other.err, Contains("seed is 0, the config's 5"));
  CHECK(workspace.run({"train", "run.yaml", "--restart"}).status == 0);
  CHECK(workspace.has("run/earlier-1/step-0000000002/manifest.json"));
  CHECK(workspace.has("run/step-0000000002/manifest.json"));
}

TEST_CASE("a plan larger than the memory that is free is refused with the numbers", "[cli][exec]") {
  const Workspace workspace;
  write_small_config(workspace);
  // 6.7 billion parameters x 12 bytes: 80 GB. The config claims a memory that no machine that runs
  // these tests has.
  workspace.write("run.yaml", R"(platform: {name: host, virtual_gpus: 1, gpu_memory_bytes: 8GiB,
           host_memory_bytes: 1000TiB}
workload: {model: llama-2-7b, sequence_length: 32, global_batch: 1, precision: f32, optimizer: adamw}
strategy: {resident_state: 0}
train: {data: text.txt, steps: 1}
)");
  const Outcome outcome = workspace.run({"train", "run.yaml"});
  INFO(outcome.err);
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.err, Contains("the plan takes") && Contains("leaves"));
}

TEST_CASE("the watchdog names a task that is stuck, and in the end gives up", "[cli][exec]") {
  const Workspace workspace;
  // Copies at 1 byte a second: the first fetch takes hours.
  write_run(workspace, "  steps: 1\n  watchdog_s: 0.2\n  checkpoint: {directory: run}\n");
  std::string config = workspace.read("run.yaml");
  const std::string platform = "platform: machine.yaml";
  config.replace(config.find(platform), platform.size(),
                 "platform: {name: host, virtual_gpus: 1, gpu_memory_bytes: 64MiB, "
                 "copy_throttle_bytes_per_s: 1}");
  const std::string strategy = "strategy: auto";
  config.replace(
      config.find(strategy), strategy.size(),
      "strategy: {resident_state: 0, resident_weights: 0, activations: gpu, policy: planned}");
  workspace.write("run.yaml", config);
  const Outcome outcome = workspace.run({"train", "run.yaml"});
  INFO(outcome.err);
  CHECK(outcome.status == 3);
  CHECK_THAT(outcome.err, Contains("watchdog: fetch weights") && Contains("on gpu0.h2d"));
  CHECK_THAT(outcome.err, Contains("waits for fetch weights"));
  CHECK_THAT(outcome.err, Contains("given up"));
  CHECK_THAT(workspace.read("run/log.txt"), Contains("watchdog"));
}

TEST_CASE("a loss or gradient that is no number ends the step it happens in", "[cli][exec]") {
  const Workspace workspace;
  // A rate of 10 throws the weights far out within a few steps.
  write_run(workspace,
            "  steps: 2000\n  learning_rate: 10\n  weight_decay: 10\n"
            "  checkpoint: {directory: run, every: 1}\n");
  const Outcome outcome = workspace.run({"train", "run.yaml"});
  INFO(outcome.err);
  CHECK(outcome.status == 3);
  CHECK_THAT(outcome.err, Contains("step ") && (Contains("the loss of micro-batch") ||
                                                Contains("gradients of sub-model")));
  CHECK_THAT(workspace.read("run/log.txt"), Contains("failed: step"));
  CHECK_THAT(outcome.err, Contains("the newest checkpoint is of step"));
}
