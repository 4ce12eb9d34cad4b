#include <chrono>
#include <csignal>
#include <random>
#include <string>
#include <thread>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "run_program.h"

using namespace offstage::tests;

TEST_CASE("killed at 100 random moments, a training ends with the bits of one that was not",
          "[cli][exec][slow]") {
  const unsigned seed = GENERATE(20261130U);
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const Workspace workspace;
  write_small_config(workspace);
  constexpr int kSteps = 600;
  const auto config = [&](const std::string& folder) {
    std::string text = small_config();
    const std::string steps = "  steps: 3\n";
    return text.replace(
        text.find(steps), steps.size(),
        fmt::format("  steps: {}\n  checkpoint: {{directory: {}, every: 3}}\n", kSteps, folder));
  };
  const auto final_state = [&](const std::string& folder) {
    std::string all;
    for (const char* part : {"master.f32", "m.f32", "v.f32"}) {
      all += workspace.read(fmt::format("{}/step-{:010}/{}", folder, kSteps, part));
    }
    return all;
  };
  workspace.write("run.yaml", config("whole"));
  REQUIRE(workspace.run({"plan", "run.yaml", "--out", "plan.json"}).status == 0);
  REQUIRE(workspace.run({"train", "run.yaml", "--plan", "plan.json"}).status == 0);
  const std::string expected = final_state("whole");
  REQUIRE(!expected.empty());

  // As many trainings as it takes to be killed 100 times; most kills come while it trains, some
  // while it loads, some while it writes. Longer than it takes to start.
  constexpr int kKills = 100;
  constexpr int kLongest = 1200;  // ms
  int kills = 0;
  for (int training = 0; kills < kKills; ++training) {
    const std::string folder = fmt::format("killed-{}", training);
    workspace.write("run.yaml", config(folder));
    bool over = false;
    while (!over) {
      Running running = workspace.start({"train", "run.yaml", "--plan", "plan.json"}, "train");
      if (kills < kKills) {
        const auto delay = std::uniform_int_distribution<>(0, kLongest)(random);
        std::this_thread::sleep_for(std::chrono::milliseconds(delay));
        running.send_to_group(SIGKILL);
      }
      const Outcome outcome = running.wait();
      INFO(outcome.err);
      // Every start after a kill finds a whole checkpoint, or none when it was too early.
      over = outcome.ended;
      if (over) REQUIRE(outcome.status == 0);
      kills += over ? 0 : 1;
    }
    CHECK(final_state(folder) == expected);
  }
  CHECK(kills == kKills);
}
