#include "report/trace_counters.h"

#include <vector>

#include <catch2/catch.hpp>

#include "traced_run.h"

using namespace offstage;
using tests::make_traced_run;

namespace {

std::vector<report::PoolPoint> points_of(const std::vector<report::PoolPoint>& points,
                                         platform::PoolId pool) {
  std::vector<report::PoolPoint> found;
  for (const auto& point : points) {
    if (point.pool == pool) found.push_back(point);
  }
  return found;
}

std::vector<report::LinkPoint> points_of(const std::vector<report::LinkPoint>& points,
                                         platform::LinkId link) {
  std::vector<report::LinkPoint> found;
  for (const auto& point : points) {
    if (point.link == link) found.push_back(point);
  }
  return found;
}

}  // namespace

TEST_CASE("a slot counts from its acquiring task's start to its releasing task's end",
          "[report][unit]") {
  const auto run = make_traced_run();
  const auto points = report::pool_points(run.window(), run.machine);
  // The slot of 4000 bytes is acquired at 0 and released at 3 ms; forward takes another 700 from
  // 2 to 3 ms.
  const auto gpu0 = points_of(points, 0);
  REQUIRE(gpu0.size() == 4);
  CHECK(gpu0[0].slots_bytes == 0);  // every counter starts at zero
  CHECK((gpu0[1].at == 0 && gpu0[1].slots_bytes == 4000 && gpu0[1].working_bytes == 0));
  CHECK((gpu0[2].at == 2'000'000 && gpu0[2].slots_bytes == 4000 && gpu0[2].working_bytes == 700));
  CHECK((gpu0[3].at == 3'000'000 && gpu0[3].slots_bytes == 0 && gpu0[3].working_bytes == 0));
  CHECK(points_of(points, 1).size() == 1);
  CHECK(points_of(points, 2).size() == 1);
}

TEST_CASE("a slot's occupants are counted one after the other", "[report][unit]") {
  auto run = make_traced_run();
  // A second occupant from 4 to 5 ms, acquired and released by one task.
  scheduler::Task task;
  const std::vector<scheduler::EngineId> engines{0};
  const std::vector<scheduler::SlotUse> both{{0, scheduler::SlotRole::weights, true, true}};
  scheduler::TaskGraph graph;
  graph.engines = run.graph.engines;
  graph.slots = run.graph.slots;
  graph.add(task, engines, {}, both);
  graph.add(task, engines, {}, both);
  graph.finish();
  scheduler::Trace trace;
  trace.tasks = {{{0.0}, {3e-3}}, {{4e-3}, {5e-3}}};
  const auto gpu0 = points_of(report::pool_points({graph, trace, {}, 0, {}}, run.machine), 0);
  REQUIRE(gpu0.size() == 5);
  CHECK((gpu0[2].at == 3'000'000 && gpu0[2].slots_bytes == 0));
  CHECK((gpu0[3].at == 4'000'000 && gpu0[3].slots_bytes == 4000));
  CHECK((gpu0[4].at == 5'000'000 && gpu0[4].slots_bytes == 0));
}

TEST_CASE("a link's load is a task's amount over the time the task took", "[report][unit]") {
  const auto run = make_traced_run();
  const auto points = report::link_points(run.window(), run.machine);
  // 2000 bytes in 1 ms are 2e6 bytes/s; 1.5e6 core-nanoseconds in 1 ms are 1.5e9 a second.
  const auto pcie = points_of(points, 0);
  REQUIRE(pcie.size() == 3);
  CHECK((pcie[1].at == 0 && pcie[1].per_second == 2'000'000));
  CHECK((pcie[2].at == 1'000'000 && pcie[2].per_second == 0));
  const auto cores = points_of(points, 1);
  REQUIRE(cores.size() == 3);
  CHECK((cores[1].at == 2'000'000 && cores[1].per_second == 1'500'000'000));
  CHECK((cores[2].at == 3'000'000 && cores[2].per_second == 0));
}

TEST_CASE("a link that a route names twice carries the bytes twice", "[report][unit]") {
  auto run = make_traced_run();
  run.machine.routes[0].links = {0, 0};
  const auto pcie = points_of(report::link_points(run.window(), run.machine), 0);
  REQUIRE(pcie.size() == 3);
  CHECK(pcie[1].per_second == 4'000'000);
}

TEST_CASE("a window's clock is shifted by its offset", "[report][unit]") {
  const auto run = make_traced_run();
  const auto points = report::pool_points({run.graph, run.trace, run.costs, 5, {1.0}}, run.machine);
  CHECK(points.front().at == 1'000'000'000);
  CHECK(points.back().at == 1'003'000'000);
}
