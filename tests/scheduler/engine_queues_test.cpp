#include "scheduler/engine_queues.h"

#include <vector>

#include <catch2/catch.hpp>

#include "tests/support/builders.h"
#include "tests/support/death.h"

namespace offstage::scheduler {
namespace {

using testing::delay;
using testing::GraphBuilder;
using Tasks = std::vector<TaskId>;

// What one call to EngineQueues lets start.
Tasks submitted(EngineQueues& queues, TaskId task) {
  Tasks startable;
  queues.submit(task, startable);
  return startable;
}
Tasks completed(EngineQueues& queues, TaskId task) {
  Tasks startable;
  queues.complete(task, startable);
  return startable;
}

TEST_CASE("an engine starts its tasks one at a time in submission order", "[scheduler][unit]") {
  GraphBuilder builder;
  const auto engine = builder.engine("engine");
  for (int i = 0; i < 3; ++i) builder.task({engine}, {}, delay(1));
  EngineQueues queues(builder.graph());
  CHECK(submitted(queues, 2) == Tasks{2});
  CHECK(submitted(queues, 0).empty());
  CHECK(submitted(queues, 1).empty());
  CHECK(queues.in_flight() == 3);
  CHECK(completed(queues, 2) == Tasks{0});
  CHECK(completed(queues, 0) == Tasks{1});
  CHECK(completed(queues, 1).empty());
  CHECK(queues.in_flight() == 0);
}

TEST_CASE("a task starts when its last predecessor is complete", "[scheduler][unit]") {
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b"), c = builder.engine("c");
  builder.task({a}, {}, delay(1));
  builder.task({b}, {}, delay(1));
  builder.task({c}, {0, 1}, delay(1));
  EngineQueues queues(builder.graph());
  submitted(queues, 0);
  submitted(queues, 1);
  CHECK(submitted(queues, 2).empty());
  CHECK(completed(queues, 1).empty());
  CHECK(completed(queues, 0) == Tasks{2});
}

TEST_CASE("a task submitted after its predecessors are complete starts at once",
          "[scheduler][unit]") {
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  builder.task({a}, {}, delay(1));
  builder.task({b}, {0}, delay(1));
  EngineQueues queues(builder.graph());
  submitted(queues, 0);
  CHECK(completed(queues, 0).empty());
  CHECK(submitted(queues, 1) == Tasks{1});
}

TEST_CASE("a task with two engines waits for both and holds both", "[scheduler][unit]") {
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b");
  builder.task({a}, {}, delay(1));
  builder.task({b}, {}, delay(1));
  builder.task({a, b}, {}, delay(1));
  builder.task({a}, {}, delay(1));
  builder.task({b}, {}, delay(1));
  EngineQueues queues(builder.graph());
  for (const TaskId task : {0, 1, 2, 3, 4}) submitted(queues, task);
  CHECK(completed(queues, 0).empty());
  CHECK(completed(queues, 1) == Tasks{2});
  CHECK(completed(queues, 2) == Tasks{3, 4});
}

TEST_CASE("what one completion lets start comes in submission order", "[scheduler][unit]") {
  // Task 0 is the predecessor of 1 and 2 and has task 3 behind it.
  GraphBuilder builder;
  const auto a = builder.engine("a"), b = builder.engine("b"), c = builder.engine("c");
  builder.task({a}, {}, delay(1));
  builder.task({b}, {0}, delay(1));
  builder.task({c}, {0}, delay(1));
  builder.task({a}, {}, delay(1));
  EngineQueues queues(builder.graph());
  for (const TaskId task : {0, 2, 3, 1}) submitted(queues, task);
  CHECK(completed(queues, 0) == Tasks{2, 3, 1});
}

TEST_CASE("a waiting task is described with what it waits for", "[scheduler][unit]") {
  GraphBuilder builder;
  const auto a = builder.engine("gpu0.compute"), b = builder.engine("gpu0.h2d");
  builder.task({a}, {}, delay(1));
  builder.task({b}, {0}, delay(1));
  builder.task({a, b}, {}, delay(1));
  EngineQueues queues(builder.graph());
  submitted(queues, 1);
  CHECK(queues.describe_waiting() ==
        "forward submodel 0 micro-batch 1 gpu0 step 0 waits for forward submodel 0 micro-batch 0 "
        "gpu0 step 0, which was never submitted");
  submitted(queues, 2);
  CHECK_THAT(queues.describe_waiting(),
             Catch::Contains("forward submodel 0 micro-batch 2 all gpus step 0 waits for forward "
                             "submodel 0 micro-batch 1 gpu0 step 0 on gpu0.h2d"));
}

TEST_CASE("submitting twice and completing what does not run are broken invariants",
          "[scheduler][unit]") {
  GraphBuilder builder;
  const auto a = builder.engine("a");
  builder.task({a}, {}, delay(1));
  builder.task({a}, {}, delay(1));
  EngineQueues queues(builder.graph());
  submitted(queues, 0);
  submitted(queues, 1);
  CHECK_THAT(testing::last_words([&] { submitted(queues, 0); }),
             Catch::Contains("submitted twice"));
  CHECK_THAT(testing::last_words([&] { completed(queues, 1); }), Catch::Contains("not running"));
}

}  // namespace
}  // namespace offstage::scheduler
