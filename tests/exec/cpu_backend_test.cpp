#include "exec/cpu_backend.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/error.h"
#include "tests/conformance/conformance.h"
#include "tests/support/builders.h"

namespace offstage::exec::testing {
namespace {

using offstage::testing::BackendUnderTest;
using offstage::testing::delay;
using offstage::testing::GraphBuilder;
using offstage::testing::TestLoad;
using scheduler::Completion;
using scheduler::TaskId;

TEST_CASE("the CPU backend keeps the contract of all backends", "[exec][conformance]") {
  const BackendUnderTest cpu{
      [](const TestLoad& load) {
        const auto body = [load](TaskId task) {
          std::this_thread::sleep_for(std::chrono::duration<double>(load.durations[task].value));
          if (task == load.failing) {
            throw Error(ErrorCode::device, "the device is lost");
          }
        };
        return std::make_unique<CpuBackend>(load.graph, body, CpuBackendOptions{});
      },
      true};
  for (const auto& check : offstage::testing::conformance_checks()) {
    DYNAMIC_SECTION(check.name) { REQUIRE_NOTHROW(check.run(cpu)); }
  }
}

TEST_CASE("a task sees what its predecessors on other engines did", "[exec]") {
  // 200 pairs of tasks, one task on each engine, and each waits for both of the pair before it. A
  // task reads what those wrote: a missing edge or fence shows as a wrong depth (and in a thread
  // sanitizer).
  GraphBuilder builder;
  const auto left = builder.engine("left"), right = builder.engine("right");
  constexpr TaskId kTasks = 400;
  for (TaskId task = 0; task < kTasks; ++task) {
    const TaskId pair = task - task % 2;
    const auto before = pair == 0 ? GraphBuilder::Tasks{} : GraphBuilder::Tasks{pair - 2, pair - 1};
    builder.task({task % 2 == 0 ? left : right}, before, delay(0.0));
  }
  const auto& graph = builder.graph();
  std::vector<int> depth(kTasks);
  CpuBackend backend(graph,
                     [&](TaskId task) {
                       int deepest = 0;
                       for (const TaskId before : graph.predecessors(task)) {
                         deepest = std::max(deepest, depth[before]);
                       }
                       depth[task] = deepest + 1;
                     },
                     {});
  for (TaskId task = 0; task < kTasks; ++task) {
    backend.submit(task);
  }
  std::size_t completions = 0;
  backend.run([&](const Completion&) { ++completions; });
  CHECK(completions == kTasks);
  // Every pair of tasks is one level.
  CHECK(depth.back() == kTasks / 2);
}

TEST_CASE("what a task throws becomes an error that names the task", "[exec]") {
  GraphBuilder builder;
  builder.task({builder.engine("compute")}, {}, delay(0.0));
  const auto& graph = builder.graph();
  CpuBackend backend(graph, [](TaskId) { throw std::runtime_error("sizes do not match"); }, {});
  backend.submit(0);
  try {
    backend.run([](const Completion&) {});
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::device);
    CHECK_THAT(error.what(), Catch::Contains(graph.describe(0)));
    CHECK_THAT(error.what(), Catch::Contains("sizes do not match"));
  }
}

TEST_CASE("every thread is prepared before its first task", "[exec]") {
  GraphBuilder builder;
  for (const char* name : {"compute", "h2d", "d2h"}) {
    builder.task({builder.engine(name)}, {}, delay(0.0));
  }
  static thread_local bool prepared = false;
  std::atomic<int> unprepared{0};
  CpuBackend backend(builder.graph(), [&](TaskId) { unprepared += prepared ? 0 : 1; },
                     {.copy_throttles = {}, .on_thread_start = [] { prepared = true; }});
  for (TaskId task = 0; task < 3; ++task) {
    backend.submit(task);
  }
  backend.run([](const Completion&) {});
  CHECK(unprepared == 0);
}

TEST_CASE("a throttled copy never ends before its bytes could have crossed", "[exec]") {
  scheduler::TaskGraph graph;
  graph.engines = {{"gpu0.h2d", scheduler::EngineKind::h2d, 0}};
  graph.steps = 1;
  const std::vector<scheduler::EngineId> engines{0};
  graph.add({.kind = scheduler::TaskKind::fetch, .bytes = {3'000'000}}, engines, {}, {});
  graph.finish();
  CpuBackend backend(graph, [](TaskId) {},
                     {.copy_throttles = {platform::BytesPerSecond{1e9}}, .on_thread_start = {}});
  backend.submit(0);
  std::vector<Completion> completions;
  backend.run([&](const Completion& completion) { completions.push_back(completion); });
  REQUIRE(completions.size() == 1);
  // 3 MB at 1 GB/s are 3 ms: a lower bound that no load on the machine can break.
  CHECK((completions[0].end - completions[0].start).value >= 0.003);
}

}  // namespace
}  // namespace offstage::exec::testing
