#include "sim/simulate.h"

#include <limits>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/error.h"
#include "sim/flow_engine.h"
#include "sim/process_pool.h"
#include "sim/simulated_backend.h"
#include "tests/support/builders.h"

namespace offstage::testing {
namespace {

using scheduler::Completion;
using scheduler::TaskId;

TEST_CASE("an impossible cost is an error that names the task", "[sim]") {
  MachineBuilder m;
  const auto route = m.route("h2d", {m.link("uplink", 25e9)});
  for (const double amount : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    GraphBuilder builder;
    builder.task({builder.engine("engine")}, {}, flow(route, amount));
    CHECK_THROWS_WITH(sim::simulate({m.machine(), builder.graph(), builder.costs()}),
                      Catch::Contains("task 0"));
  }
}

TEST_CASE("a second simulation in one process is an error", "[sim]") {
  const sim::ProcessJob job{"job", []() -> std::vector<double> {
                              const platform::Machine machine;
                              const auto first = sim::make_flow_engine(machine);
                              sim::make_flow_engine(machine);
                              return {};
                            }};
  CHECK_THROWS_WITH(sim::run_in_processes({&job, 1}, 1), Catch::Contains("one simulation only"));
}

TEST_CASE("a link degrades while a copy is under way, and a cap on each copy as well", "[sim]") {
  // Steps 1 and 2. The first step's task takes 1 s; the copy of step 2 starts at once and moves
  // 10 B/s until then. At half the capacity the other 20 B take 4 s: 5 s in all.
  for (const bool caps : {false, true}) {
    MachineBuilder m;
    const auto route = m.route("h2d", {m.link("lane", 10.0, caps)});
    GraphBuilder builder;
    builder.task({builder.engine("a")}, {}, delay(1.0), {}, 0);
    builder.task({builder.engine("b")}, {}, flow(route, 30.0), {}, 1);
    scheduler::Disturbances disturbances;
    disturbances.links.push_back({0, 0.5, {2, 2}});
    const auto result = sim::simulate({.machine = m.machine(),
                                       .graph = builder.graph(),
                                       .costs = builder.costs(),
                                       .disturbances = &disturbances});
    CHECK(result.trace.tasks[1].end.value == Approx(5.0).epsilon(1e-9));
  }
}

TEST_CASE("what ends at one instant is delivered by task id", "[sim]") {
  // All end at 0.04 s: a flow, a delay, and a flow after a delay; the last ones are followed by
  // tasks of no length.
  MachineBuilder m;
  const auto slow = m.route("slow", {m.link("a", 25e9)});
  const auto fast = m.route("fast", {m.link("b", 50e9)});
  GraphBuilder builder;
  scheduler::TaskCost half = flow(fast, 1e9);
  half.exclusive = {0.02};
  const std::vector<scheduler::TaskCost> costs{delay(0.04), flow(slow, 1e9), half, flow(slow, 0),
                                               delay(0.04)};
  for (const auto& cost : costs) builder.task({builder.engine("engine")}, {}, cost);
  builder.task({builder.engine("engine")}, {4}, delay(0.0));
  builder.task({builder.engine("engine")}, {0, 1, 2}, delay(0.0));
  const auto& graph = builder.graph();
  const sim::ProcessJob job{"job", [&] {
                              sim::SimulatedBackend backend(m.machine(), graph, builder.costs());
                              // Against the order of ids.
                              for (const TaskId task : {4, 3, 2, 1, 0, 6, 5}) backend.submit(task);
                              std::vector<double> order;
                              backend.run([&](const Completion& c) { order.push_back(c.task); });
                              return order;
                            }};
  CHECK(sim::run_in_processes({&job, 1}, 1)[0] == std::vector<double>{3, 0, 1, 2, 4, 5, 6});
}

TEST_CASE("many simulations share the cores and keep their order", "[sim]") {
  MachineBuilder m;
  const auto route = m.route("h2d", {m.link("uplink", 25e9)});
  std::vector<GraphBuilder> builders(5);
  std::vector<sim::Simulation> simulations;
  for (std::size_t i = 0; i < builders.size(); ++i) {
    builders[i].task({builders[i].engine("engine")}, {}, flow(route, 25e9 * (i + 1.0)));
    simulations.push_back({m.machine(), builders[i].graph(), builders[i].costs()});
  }
  const auto results = sim::simulate_all(simulations, 2);
  REQUIRE(results.size() == 5);
  for (std::size_t i = 0; i < results.size(); ++i) {
    CHECK(results[i].trace.tasks[0].end.value == Approx(i + 1.0).epsilon(1e-9));
    CHECK(results[i].wall.value > 0.0);
  }
}

}  // namespace
}  // namespace offstage::testing
