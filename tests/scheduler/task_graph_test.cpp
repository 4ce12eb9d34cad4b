#include "scheduler/task_graph.h"

#include <vector>

#include <catch2/catch.hpp>

#include "scheduler/slot_ring.h"

namespace offstage::scheduler {
namespace {

TEST_CASE("a graph knows both directions of its edges, repeated ones once", "[scheduler][unit]") {
  TaskGraph graph;
  graph.engines.push_back({"gpu0.compute", EngineKind::compute, 0});
  const std::vector<EngineId> engine{0};
  const TaskId a = graph.add({}, engine, {}, {});
  const TaskId b = graph.add({}, engine, std::vector<TaskId>{a}, {});
  const TaskId c = graph.add({}, engine, std::vector<TaskId>{b, a, b}, {});
  graph.finish();
  const auto before = graph.predecessors(c);
  CHECK(std::vector<TaskId>(before.begin(), before.end()) == std::vector<TaskId>{a, b});
  const auto after = graph.successors(a);
  CHECK(std::vector<TaskId>(after.begin(), after.end()) == std::vector<TaskId>{b, c});
  CHECK(graph.successors(c).empty());
}

TEST_CASE("a task is described by kind, payload, sub-model, micro-batch, GPU and step",
          "[scheduler][unit]") {
  TaskGraph graph;
  graph.engines = {{"gpu0.h2d", EngineKind::h2d, 0}, {"gpu1.h2d", EngineKind::h2d, 1}};
  Task task;
  task.kind = TaskKind::fetch;
  task.payload = Payload::weights;
  task.submodel = 3;
  task.gpu = 1;
  task.step = 2;
  graph.add(task, std::vector<EngineId>{1}, {}, {});
  task.kind = TaskKind::backward;
  task.payload = Payload::none;
  task.micro_batch = 5;
  graph.add(task, std::vector<EngineId>{1}, {}, {});
  task.kind = TaskKind::all_gather;
  graph.add(task, std::vector<EngineId>{0, 1}, {}, {});
  graph.finish();
  CHECK(graph.describe(0) == "fetch weights submodel 3 gpu1 step 2");
  CHECK(graph.describe(1) == "backward submodel 3 micro-batch 5 gpu1 step 2");
  CHECK(graph.describe(2) == "all_gather submodel 3 all gpus step 2");
}

TEST_CASE("a ring hands out the slot free longest and the tasks to wait for", "[scheduler][unit]") {
  SlotRing ring;
  ring.add(7);
  ring.add(8);
  std::vector<TaskId> wait;
  CHECK(ring.acquire(wait) == 7);
  CHECK(ring.acquire(wait) == 8);
  CHECK(wait.empty());
  ring.release(8, {3});
  ring.release(7, {4, 5});
  CHECK(ring.acquire(wait) == 8);
  CHECK(wait == std::vector<TaskId>{3});
  CHECK(ring.acquire(wait) == 7);
  CHECK(wait == std::vector<TaskId>{3, 4, 5});
  CHECK(ring.free() == 0);
}

}  // namespace
}  // namespace offstage::scheduler
