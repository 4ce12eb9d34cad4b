#include "scheduler/disturbances.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

#include "platform/error.h"
#include "tests/support/builders.h"
#include "tests/support/temporary_path.h"

namespace offstage::scheduler {
namespace {

using platform::Document;
using testing::delay;
using testing::GraphBuilder;

platform::Machine machine() {
  platform::Machine machine;
  machine.gpus.resize(2);
  machine.gpus[0].name = "gpu0";
  machine.gpus[1].name = "gpu1";
  machine.links.resize(2);
  machine.links[0].name = "socket0.dram";
  machine.links[1].name = "gpu1.pcie";
  return machine;
}

Disturbances read(const std::string& text) {
  const auto document = Document::parse("run.yaml", text, false);
  return read_disturbances(document.root(), machine());
}

std::string complaint(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Tasks of gpu1 in two steps: a copy of 8 bytes, then 1 s of computing.
struct TwoSteps {
  TaskGraph graph;
  std::vector<TaskCost> costs;
};

TwoSteps two_steps() {
  GraphBuilder builder;
  const auto compute = builder.engine("gpu1.compute"), copy = builder.engine("gpu1.h2d");
  for (std::uint32_t step = 0; step < 2; ++step) {
    builder.task({copy}, {}, testing::flow(0, 8.0), {}, step);
    builder.task({compute}, {2 * step}, delay(1.0), {}, step);
  }
  TwoSteps two{builder.graph(), builder.costs()};
  two.graph.engines[compute] = {"gpu1.compute", EngineKind::compute, 1};
  two.graph.engines[copy] = {"gpu1.h2d", EngineKind::h2d, 1};
  for (const TaskId copy_task : {0, 2}) two.graph.tasks[copy_task].kind = TaskKind::fetch;
  for (const TaskId pass : {1, 3}) two.graph.tasks[pass].kind = TaskKind::forward;
  return two;
}

TEST_CASE("a slow GPU computes longer and copies as fast, from its step on", "[scheduler][unit]") {
  const auto [graph, undisturbed] = two_steps();
  const auto slow = read("slow_gpus: [{gpu: gpu1, speed: 0.5, from_step: 2}]");
  const auto costs = disturbed_costs(undisturbed, graph, slow);
  CHECK(costs[1].exclusive.value == 1.0);
  CHECK(costs[2].amount == 8.0);
  // At half the speed 1 s becomes 2 s.
  CHECK(costs[3].exclusive.value == 2.0);
}

TEST_CASE("a link is degraded in the steps it is said to be, and twice when named twice",
          "[scheduler][unit]") {
  const auto changed = read(
      "links: [{link: socket0.dram, factor: 0.5, from_step: 2, to_step: 3}, "
      "{link: socket0.dram, factor: 0.4}]");
  CHECK(link_factors(machine(), changed, 0) == std::vector<double>{0.4, 1.0});
  CHECK(link_factors(machine(), changed, 2) == std::vector<double>{0.5 * 0.4, 1.0});
  CHECK(link_factors(machine(), changed, 3) == std::vector<double>{0.4, 1.0});
}

TEST_CASE("jitter has mean 1 and the spread that was asked for", "[scheduler][unit]") {
  GraphBuilder builder;
  const auto engine = builder.engine("gpu0.compute");
  constexpr int kTasks = 20000;
  for (int i = 0; i < kTasks; ++i) builder.task({engine}, {}, delay(1.0));
  double sum = 0.0, squares = 0.0;
  for (const auto& cost : disturbed_costs(builder.costs(), builder.graph(), read("jitter: 0.2"))) {
    sum += cost.exclusive.value;
    squares += cost.exclusive.value * cost.exclusive.value;
  }
  const double mean = sum / kTasks;
  // The mean of 20,000 draws deviates by 0.2 / sqrt(20,000) = 0.0014; four times that is allowed.
  CHECK(mean == Approx(1.0).margin(0.006));
  // The ends of the distribution are cut at 0.5 and 99.5 percent, which takes a little of the
  // spread.
  CHECK(std::sqrt(squares / kTasks - mean * mean) == Approx(0.2).epsilon(0.04));
}

TEST_CASE("the same seed disturbs alike, another one otherwise, and kinds by themselves",
          "[scheduler][unit]") {
  const TwoSteps two = two_steps();
  const auto times = [&](const std::string& text) {
    std::vector<double> values;
    for (const auto& cost : disturbed_costs(two.costs, two.graph, read(text))) {
      values.push_back(cost.exclusive.value + cost.amount);
    }
    return values;
  };
  CHECK(times("{seed: 3, jitter: 0.2}") == times("{seed: 3, jitter: 0.2}"));
  CHECK(times("{seed: 3, jitter: 0.2}") != times("{seed: 4, jitter: 0.2}"));
  // Quantiles 2 and 4: draws lie evenly between them. Copies are left alone.
  const auto values = times("{seed: 3, jitter: {forward: {quantiles: [2, 4]}}}");
  CHECK(values[0] == 8.0);
  CHECK(values[1] >= 2.0);
  CHECK(values[1] < 4.0);
  CHECK(values[1] != values[3]);
}

TEST_CASE("distributions may stand in a file of their own", "[scheduler][unit]") {
  const std::string file = temporary_path("jitter.yaml").string();
  std::ofstream(file) << "forward: {quantiles: [3, 3]}\n";
  const TwoSteps two = two_steps();
  const auto costs = disturbed_costs(two.costs, two.graph, read("jitter: {file: " + file + "}"));
  CHECK(costs[0].amount == 8.0);
  CHECK(costs[1].exclusive.value == 3.0);
  std::filesystem::remove(file);
}

TEST_CASE("what can't be disturbed is named with its place", "[scheduler][unit]") {
  CHECK_THAT(complaint("links: [{link: socket0.dam, factor: 0.5}]"),
             Catch::Contains("run.yaml:1:16") && Catch::Contains("socket0.dram"));
  CHECK_THAT(complaint("slow_gpus: [{gpu: gpu7, speed: 0.5}]"), Catch::Contains("gpu0, gpu1"));
  CHECK_THAT(complaint("slow_gpus: [{gpu: gpu1, speed: 0}]"), Catch::Contains("0.001"));
  CHECK_THAT(complaint("jitter: {forwards: 0.1}"), Catch::Contains("forward"));
  CHECK_THAT(complaint("jitter: {quantiles: [1.2, 1.1]}"), Catch::Contains("rise"));
  CHECK_THAT(complaint("links: [{link: gpu1.pcie, factor: 0.5, from_step: 4, to_step: 3}]"),
             Catch::Contains("to_step"));
}

}  // namespace
}  // namespace offstage::scheduler
