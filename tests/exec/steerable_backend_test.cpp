#include "exec/steerable_backend.h"

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "exec/cpu_backend.h"
#include "exec/stream_backend.h"
#include "tests/exec/fake_device.h"
#include "tests/support/builders.h"

// What steering means, on threads and on the streams of a fake device.
namespace offstage::exec::testing {
namespace {

using offstage::testing::delay;
using offstage::testing::GraphBuilder;
using scheduler::Completion;
using scheduler::EngineKind;
using scheduler::TaskGraph;
using scheduler::TaskId;

// One GPU's compute engine, or threads. `on_begin` is called as each task begins.
struct Steered {
  Steered(bool on_streams, const TaskGraph& graph, std::function<void(TaskId)> on_begin) {
    if (!on_streams) {
      backend = std::make_unique<CpuBackend>(graph, on_begin, CpuBackendOptions{});
      return;
    }
    device = std::make_unique<FakeDevice>(1);
    backend = std::make_unique<StreamBackend>(
        graph, *device,
        StreamBodies{.enqueue =
                         [this, on_begin](TaskId task, std::span<const StreamId> streams) {
                           device->work(streams.front(), {0.001}, {});
                           on_begin(task);
                         },
                     .run = on_begin});
  }
  void submit_all(const TaskGraph& graph) const {
    for (TaskId task = 0; task < graph.size(); ++task) backend->submit(task);
  }

  std::unique_ptr<FakeDevice> device;  // null: threads
  std::unique_ptr<SteerableBackend> backend;
};

// Ten steps of one task each on one engine, submitted at once.
struct Steps {
  Steps() {
    const auto engine = builder.engine("engine");
    for (std::uint32_t step = 0; step < kSteps; ++step) {
      builder.task({engine}, {}, delay(0.0), {}, step);
    }
  }
  static constexpr std::uint32_t kSteps = 10;
  GraphBuilder builder;
};

TEST_CASE("a held run ends the step that has begun and starts no other", "[exec]") {
  const bool on_streams = GENERATE(false, true);
  Steps steps;
  const auto& graph = steps.builder.graph();
  SteerableBackend* held = nullptr;
  std::atomic<int> begun = 0;
  const Steered steered(on_streams, graph, [&](TaskId task) {
    ++begun;
    if (task == 2) held->hold();
  });
  held = steered.backend.get();
  steered.submit_all(graph);
  std::atomic<std::size_t> completions = 0;
  int begun_at_rest = 0;
  std::size_t completions_at_rest = 0;
  std::vector<EngineActivity> activity;
  std::jthread other([&] {
    while (!held->at_rest()) std::this_thread::yield();
    begun_at_rest = begun;
    completions_at_rest = completions;
    activity = held->activity();
    held->release();
  });
  held->run([&](const Completion&) { ++completions; });
  other.join();
  // Those of steps 0 to 2.
  CHECK(begun_at_rest == 3);
  CHECK(completions_at_rest == 3);
  REQUIRE(activity.size() == 1);
  CHECK(activity.front().waits_for == "the run is held");
  CHECK(activity.front().in_line == 7);
  CHECK(completions == Steps::kSteps);
}

TEST_CASE("a run is not at rest while its last completion is being handled", "[exec]") {
  const bool on_streams = GENERATE(false, true);
  Steps steps;
  const auto& graph = steps.builder.graph();
  SteerableBackend* held = nullptr;
  const Steered steered(on_streams, graph, [&](TaskId task) {
    if (task == 0) held->hold();
  });
  held = steered.backend.get();
  steered.submit_all(graph);
  std::vector<bool> at_rest;
  std::jthread other([&] {
    while (!held->at_rest()) std::this_thread::yield();
    held->release();
  });
  held->run([&](const Completion&) { at_rest.push_back(held->at_rest()); });
  CHECK(at_rest == std::vector<bool>(Steps::kSteps, false));
}

TEST_CASE("a run that is to end at its hold leaves the later steps undone", "[exec]") {
  const bool on_streams = GENERATE(false, true);
  Steps steps;
  const auto& graph = steps.builder.graph();
  SteerableBackend* ending = nullptr;
  const Steered steered(on_streams, graph, [&](TaskId task) {
    if (task == 4) ending->end_at_hold();
  });
  ending = steered.backend.get();
  steered.submit_all(graph);
  std::vector<TaskId> done;
  CHECK_THROWS_AS(ending->run([&](const Completion& c) { done.push_back(c.task); }),
                  EndedOnRequest);
  CHECK(done == std::vector<TaskId>{0, 1, 2, 3, 4});
}

TEST_CASE("a run at rest can be ended for good", "[exec]") {
  const bool on_streams = GENERATE(false, true);
  Steps steps;
  const auto& graph = steps.builder.graph();
  SteerableBackend* ending = nullptr;
  const Steered steered(on_streams, graph, [&](TaskId task) {
    if (task == 1) ending->hold();
  });
  ending = steered.backend.get();
  steered.submit_all(graph);
  std::jthread other([&] {
    while (!ending->at_rest()) std::this_thread::yield();
    ending->end_at_hold();
  });
  std::size_t completions = 0;
  CHECK_THROWS_AS(ending->run([&](const Completion&) { ++completions; }), EndedOnRequest);
  CHECK(completions == 2);
}

TEST_CASE("a run that is to end in its last step has simply ended", "[exec]") {
  const bool on_streams = GENERATE(false, true);
  Steps steps;
  const auto& graph = steps.builder.graph();
  SteerableBackend* ending = nullptr;
  const Steered steered(on_streams, graph, [&](TaskId task) {
    if (task == 9) ending->end_at_hold();
  });
  ending = steered.backend.get();
  steered.submit_all(graph);
  std::size_t completions = 0;
  CHECK_NOTHROW(ending->run([&](const Completion&) { ++completions; }));
  CHECK(completions == Steps::kSteps);
}

TEST_CASE("a hold lets a later step end when an earlier one waits behind it", "[exec]") {
  const bool on_streams = GENERATE(false, true);
  // The policy put a task of step 1 in line before one of step 0.
  GraphBuilder builder;
  const auto engine = builder.engine("engine");
  for (const std::uint32_t step : {0U, 1U, 0U, 2U}) {
    builder.task({engine}, {}, delay(0.0), {}, step);
  }
  const auto& graph = builder.graph();
  SteerableBackend* ending = nullptr;
  const Steered steered(on_streams, graph, [&](TaskId task) {
    if (task == 0) ending->end_at_hold();
  });
  ending = steered.backend.get();
  steered.submit_all(graph);
  std::vector<TaskId> done;
  CHECK_THROWS_AS(ending->run([&](const Completion& c) { done.push_back(c.task); }),
                  EndedOnRequest);
  CHECK(done == std::vector<TaskId>{0, 1, 2});
}

TEST_CASE("what streams were given runs, or waits for a task that is named", "[exec]") {
  // A copy, a task of the GPU after it, an update on the CPU after that, and one behind it.
  GraphBuilder builder;
  const auto h2d = builder.engine("gpu0.h2d"), compute = builder.engine("gpu0.compute"),
             optimizer = builder.engine("socket0.optimizer");
  builder.task({h2d}, {}, delay(0.0));
  builder.task({compute}, {0}, delay(0.0));
  builder.task({optimizer}, {1}, delay(0.0));
  builder.task({optimizer}, {}, delay(0.0));
  TaskGraph graph = builder.graph();
  graph.engines[h2d].kind = EngineKind::h2d;
  graph.engines[optimizer].kind = EngineKind::optimizer;
  const Steered steered(true, graph, [](TaskId) {});
  steered.submit_all(graph);
  // Both tasks of the GPU are on their way once no thread has them; nobody lets the device go on.
  std::vector<EngineActivity> activity;
  do {
    std::this_thread::yield();
    activity = steered.backend->activity();
  } while (activity[compute].running_for || activity[compute].waits_for.empty() ||
           activity[h2d].in_line + activity[compute].in_line > 2 ||
           activity[optimizer].waits_for.find("could start") != std::string::npos);
  CHECK(activity[h2d].engine == "gpu0.h2d");
  CHECK(activity[h2d].task == graph.describe(0));
  CHECK(activity[h2d].running_for.has_value());
  CHECK(activity[h2d].waits_for.empty());
  CHECK(activity[compute].task == graph.describe(1));
  CHECK(activity[compute].waits_for == graph.describe(1) + " waits for " + graph.describe(0));
  CHECK(activity[optimizer].task == graph.describe(2));
  CHECK(activity[optimizer].waits_for == graph.describe(2) + " waits for " + graph.describe(1));
  CHECK(activity[optimizer].in_line == 2);
  std::size_t completions = 0;
  steered.backend->run([&](const Completion&) { ++completions; });
  CHECK(completions == 4);
  activity = steered.backend->activity();
  CHECK(activity[compute].task.empty());
  CHECK(activity[compute].in_line == 0);
}

}  // namespace
}  // namespace offstage::exec::testing
