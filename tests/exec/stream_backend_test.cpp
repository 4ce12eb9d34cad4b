#include "exec/stream_backend.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "exec/gpu_lost.h"
#include "platform/error.h"
#include "tests/conformance/conformance.h"
#include "tests/exec/fake_device.h"
#include "tests/support/builders.h"

namespace offstage::exec::testing {
namespace {

using offstage::testing::BackendUnderTest;
using offstage::testing::delay;
using offstage::testing::GraphBuilder;
using offstage::testing::TestLoad;
using platform::Bytes;
using scheduler::Completion;
using scheduler::EngineKind;
using scheduler::TaskGraph;
using scheduler::TaskId;

// The graph with each engine the compute engine of a GPU of its own.
TaskGraph on_gpus(const TaskGraph& graph) {
  TaskGraph changed = graph;
  for (std::size_t engine = 0; engine < changed.engines.size(); ++engine) {
    changed.engines[engine].device = static_cast<std::uint16_t>(engine);
  }
  return changed;
}

// A backend with the device, and the graph, that it runs on.
class OnFakeDevice final : public scheduler::Backend {
 public:
  explicit OnFakeDevice(const TestLoad& load)
      : graph_(on_gpus(load.graph)),
        device_(static_cast<int>(graph_.engines.size())),
        backend_(graph_, device_,
                 {.enqueue =
                      [this, load](TaskId task, std::span<const StreamId> streams) {
                        device_.work(streams.front(), load.durations[task], [task, load] {
                          if (task == load.failing) {
                            throw Error(ErrorCode::device, "the device is lost");
                          }
                        });
                      },
                  .run = {},
                  .on_thread_start = {}}) {}

  platform::Seconds now() const override { return backend_.now(); }
  void submit(TaskId task) override { backend_.submit(task); }
  void run(const scheduler::CompletionHandler& handler) override { backend_.run(handler); }

 private:
  const TaskGraph graph_;
  FakeDevice device_;
  StreamBackend backend_;
};

TEST_CASE("streams keep the contract of all backends", "[exec][conformance]") {
  const BackendUnderTest streams{
      [](const TestLoad& load) { return std::make_unique<OnFakeDevice>(load); }, true};
  for (const auto& check : offstage::testing::conformance_checks()) {
    DYNAMIC_SECTION(check.name) { REQUIRE_NOTHROW(check.run(streams)); }
  }
}

// Two GPU engines and a CPU's.
struct Engines {
  GraphBuilder builder;
  scheduler::EngineId h2d = builder.engine("gpu0.h2d");
  scheduler::EngineId compute = builder.engine("gpu0.compute");
  scheduler::EngineId optimizer = builder.engine("socket0.optimizer");

  TaskGraph graph() {
    TaskGraph made = builder.graph();
    made.engines[h2d].kind = EngineKind::h2d;
    made.engines[optimizer].kind = EngineKind::optimizer;
    return made;
  }
};

void submit_all(StreamBackend& backend, const TaskGraph& graph) {
  for (TaskId task = 0; task < graph.size(); ++task) {
    backend.submit(task);
  }
}

TEST_CASE("a GPU is given its tasks before those they wait for are done", "[exec]") {
  Engines engines;
  engines.builder.task({engines.h2d}, {}, delay(0.0));
  engines.builder.task({engines.compute}, {0}, delay(0.0));
  engines.builder.task({engines.compute}, {1}, delay(0.0));
  const TaskGraph graph = engines.graph();
  FakeDevice device(1);
  std::atomic<int> given{0};
  std::vector<TaskId> order;
  StreamBackend backend(graph, device,
                        {.enqueue =
                             [&](TaskId task, std::span<const StreamId> streams) {
                               device.work(streams.front(), {0.001},
                                           [&order, task] { order.push_back(task); });
                               ++given;
                             },
                         .run = {}});
  submit_all(backend, graph);
  while (given < 3) {
    std::this_thread::yield();
  }
  // Nobody has let time pass.
  CHECK(order.empty());
  CHECK(device.now().value == 0.0);
  std::vector<Completion> seen;
  backend.run([&](const Completion& completion) { seen.push_back(completion); });
  CHECK(order == std::vector<TaskId>{0, 1, 2});
  REQUIRE(seen.size() == 3);
  // Three times a millisecond, one after the other.
  CHECK(seen[1].start.value == Approx(0.001));
  CHECK(seen[2].end.value == Approx(0.003));
}

TEST_CASE("tasks of GPU and CPU see what those before them did", "[exec]") {
  // Pairs of a task on the GPU and one on the CPU, each after both of the pair before it.
  Engines engines;
  constexpr TaskId kTasks = 200;
  for (TaskId task = 0; task < kTasks; ++task) {
    const TaskId pair = task - task % 2;
    const auto before = pair == 0 ? GraphBuilder::Tasks{} : GraphBuilder::Tasks{pair - 2, pair - 1};
    engines.builder.task({task % 2 == 0 ? engines.compute : engines.optimizer}, before, delay(0.0));
  }
  const TaskGraph graph = engines.graph();
  FakeDevice device(1);
  std::vector<int> depth(kTasks);
  const auto count = [&](TaskId task) {
    int deepest = 0;
    for (const TaskId before : graph.predecessors(task)) {
      deepest = std::max(deepest, depth[before]);
    }
    depth[task] = deepest + 1;
  };
  StreamBackend backend(graph, device,
                        {.enqueue =
                             [&](TaskId task, std::span<const StreamId> streams) {
                               device.work(streams.front(), {}, [&count, task] { count(task); });
                             },
                         .run = count});
  submit_all(backend, graph);
  std::size_t completions = 0;
  backend.run([&](const Completion&) { ++completions; });
  CHECK(completions == kTasks);
  CHECK(depth.back() == kTasks / 2);
}

// A copy into a slot, and a task that reads it.
std::vector<std::string> complaints_of_copy_and_reader(bool with_edge) {
  Engines engines;
  engines.builder.task({engines.h2d}, {}, delay(0.0));
  engines.builder.task({engines.compute},
                       with_edge ? GraphBuilder::Tasks{0} : GraphBuilder::Tasks{}, delay(0.0));
  const TaskGraph graph = engines.graph();
  FakeDevice device(1);
  Arena gpu("gpu0", Bytes{64}, device.on_gpu(0));
  Arena host("host0", Bytes{64}, device.pinned({}));
  const Buffer slot(gpu, "slot", Bytes{64}), source(host, "source", Bytes{64});
  std::atomic<int> given{0};
  {
    StreamBackend backend(graph, device,
                          {.enqueue =
                               [&](TaskId task, std::span<const StreamId> streams) {
                                 if (task == 0) {
                                   device.copy(streams.front(), source.data(), slot.data(),
                                               slot.size());
                                 } else {
                                   FakeDevice::declare({{slot.data(), slot.size(), false}});
                                   device.launch(streams.front(), [] {});
                                 }
                                 ++given;
                               },
                           .run = {}});
    submit_all(backend, graph);
    // Else the CPU might see the copy done before it gives the other: an order, too.
    while (given < 2) {
      std::this_thread::yield();
    }
    backend.run([](const Completion&) {});
  }
  return device.complaints();
}

TEST_CASE("the fake device finds a use of memory that no event orders", "[exec]") {
  CHECK(complaints_of_copy_and_reader(true).empty());
  // Which of the two was given first is chance.
  const auto complaints = complaints_of_copy_and_reader(false);
  REQUIRE(complaints.size() == 1);
  CHECK_THAT(complaints[0], Catch::Contains("in no order"));
}

TEST_CASE("a GPU that fails names the task it had not finished", "[exec]") {
  Engines engines;
  engines.builder.task({engines.compute}, {}, delay(0.0));
  engines.builder.task({engines.optimizer}, {0}, delay(0.0));
  const TaskGraph graph = engines.graph();
  FakeDevice device(1);
  StreamBackend backend(graph, device,
                        {.enqueue =
                             [&](TaskId, std::span<const StreamId> streams) {
                               device.work(streams.front(), {0.001}, [] {
                                 throw Error(ErrorCode::device, "an illegal address");
                               });
                             },
                         .run = [](TaskId) { FAIL("it waits for what failed"); }});
  submit_all(backend, graph);
  try {
    backend.run([](const Completion&) { FAIL("nothing completes"); });
    FAIL("nothing was thrown");
  } catch (const GpuLost& error) {
    CHECK(error.gpu() == 0);
    CHECK(error.code() == ErrorCode::device);
    CHECK_THAT(error.what(),
               Catch::Contains(graph.describe(0)) && Catch::Contains("an illegal address"));
  }
}

TEST_CASE("the fake device's collectives move and sum shards", "[exec]") {
  FakeDevice device(2);
  Arena left("gpu0", Bytes{16}, device.on_gpu(0)), right("gpu1", Bytes{16}, device.on_gpu(1));
  const Buffer a(left, "a", Bytes{16}), b(right, "b", Bytes{16});
  for (int i = 0; i < 4; ++i) {
    a.floats()[i] = static_cast<float>(i);       // 0 1 2 3
    b.floats()[i] = static_cast<float>(10 * i);  // 0 10 20 30
  }
  const std::vector<DeviceWork::Part> parts{
      {device.stream(0, EngineKind::collective), a.data(), nullptr},
      {device.stream(1, EngineKind::collective), b.data(), nullptr}};
  const auto finish = [&] { device.idle(), device.idle(); };
  // The first two elements are gpu0's: 0 + 0 and 1 + 10; the others gpu1's: 2 + 20 and 3 + 30.
  device.reduce_scatter(parts, platform::Precision::f32, 2);
  finish();
  CHECK(a.floats()[0] == 0.0F);
  CHECK(a.floats()[1] == 11.0F);
  CHECK(b.floats()[2] == 22.0F);
  CHECK(b.floats()[3] == 33.0F);
  device.all_gather(parts, Bytes{8});
  finish();
  for (const Buffer* buffer : {&a, &b}) {
    const std::vector<float> all(buffer->floats(), buffer->floats() + 4);
    CHECK(all == std::vector<float>{0.0F, 11.0F, 22.0F, 33.0F});
  }
  CHECK(device.complaints().empty());
}

}  // namespace
}  // namespace offstage::exec::testing
