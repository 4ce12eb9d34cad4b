#include <cmath>
#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

#include "sim/simulate.h"
#include "tests/support/builders.h"

// Simulated times against arithmetic: what several transfers make of the links they share.
namespace offstage::testing {
namespace {

using platform::LinkId;
using platform::RouteId;
using scheduler::TaskCost;

constexpr double kTolerance = 1e-9;  // relative

// When each task ends, all of them started together on engines of their own.
std::vector<double> ends_of(const MachineBuilder& machine, const std::vector<TaskCost>& tasks) {
  GraphBuilder builder;
  for (const TaskCost& cost : tasks) {
    const auto engine = builder.engine("engine" + std::to_string(builder.costs().size()));
    builder.task({engine}, {}, cost);
  }
  const auto result = sim::simulate({machine.machine(), builder.graph(), builder.costs()});
  std::vector<double> ends;
  for (const auto& interval : result.trace.tasks) ends.push_back(interval.end.value);
  return ends;
}

void check_ends(const MachineBuilder& machine, const std::vector<TaskCost>& tasks,
                const std::vector<double>& expected) {
  const auto ends = ends_of(machine, tasks);
  REQUIRE(ends.size() == expected.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    INFO("task " << i);
    CHECK(std::abs(ends[i] - expected[i]) <= kTolerance * expected[i]);
  }
}

constexpr double kGb = 1e9;

TEST_CASE("a lone copy takes its size over the narrowest link", "[sim]") {
  // 1 GB over min(31.5, 25) GB/s = 0.04 s.
  MachineBuilder m;
  const auto route = m.route("h2d", {m.link("pcie", 31.5e9), m.link("uplink", 25e9)});
  check_ends(m, {flow(route, kGb)}, {0.04});
}

TEST_CASE("two GPUs of one switch get half of its uplink each", "[sim]") {
  // 1 GB each over 25 GB/s together: 2 / 25 = 0.08 s.
  MachineBuilder m;
  const auto uplink = m.link("uplink", 25e9);
  const auto first = m.route("gpu0", {m.link("pcie0", 25e9), uplink});
  const auto second = m.route("gpu1", {m.link("pcie1", 25e9), uplink});
  check_ends(m, {flow(first, kGb), flow(second, kGb)}, {0.08, 0.08});
}

TEST_CASE("the longer of two copies speeds up when the shorter one ends", "[sim]") {
  // Half rate each until the 1 GB copy ends at 2 / 25 = 0.08 s; the 3 GB one then has 2 GB left and
  // the whole uplink: 0.08 + 2 / 25 = 0.16 s.
  MachineBuilder m;
  const auto route = m.route("h2d", {m.link("uplink", 25e9)});
  check_ends(m, {flow(route, kGb), flow(route, 3 * kGb)}, {0.08, 0.16});
}

TEST_CASE("opposite directions do not disturb each other without a duplex cap", "[sim]") {
  MachineBuilder m;
  const auto up = m.route("h2d", {m.link("up", 25e9)});
  const auto down = m.route("d2h", {m.link("down", 25e9)});
  check_ends(m, {flow(up, kGb), flow(down, kGb)}, {0.04, 0.04});
}

TEST_CASE("opposite directions share the duplex cap", "[sim]") {
  // Cap 40 GB/s for both directions, 20 each although each link has 25. The 1 GB copy ends at
  // 1 / 20 = 0.05 s; the 2 GB one then has 1 GB left at 25: 0.05 + 0.04 = 0.09 s.
  MachineBuilder m;
  const auto duplex = m.link("duplex", 40e9);
  const auto up = m.route("h2d", {m.link("up", 25e9), duplex});
  const auto down = m.route("d2h", {m.link("down", 25e9), duplex});
  check_ends(m, {flow(up, kGb), flow(down, 2 * kGb)}, {0.05, 0.09});
}

// Four PCIe switches with two GPUs each, two switches on each socket: the shape of a DGX-A100.
struct EightGpus {
  MachineBuilder machine;
  std::vector<RouteId> h2d, d2h;
  std::vector<RouteId> optimizer;  // by socket
};

EightGpus eight_gpus(double uplink_bytes_per_s, double duplex_bytes_per_s,
                     double dram_bytes_per_s) {
  EightGpus result;
  MachineBuilder& m = result.machine;
  for (int socket = 0; socket < 2; ++socket) {
    const auto dram = m.link("dram", dram_bytes_per_s);
    result.optimizer.push_back(m.route("optimizer", {dram, m.link("cores", 90e9, true)}));
    for (int pcie_switch = 0; pcie_switch < 2; ++pcie_switch) {
      const auto up = m.link("switch.up", uplink_bytes_per_s);
      const auto down = m.link("switch.down", uplink_bytes_per_s);
      const auto duplex = m.link("switch.duplex", duplex_bytes_per_s);
      for (int gpu = 0; gpu < 2; ++gpu) {
        result.h2d.push_back(m.route("h2d", {m.link("gpu.up", 26e9), up, duplex, dram}));
        result.d2h.push_back(m.route("d2h", {m.link("gpu.down", 26e9), down, duplex, dram}));
      }
    }
  }
  return result;
}

TEST_CASE("all eight GPUs at once are limited by the four uplinks", "[sim]") {
  // Two copies of 1 GB on each uplink of 25 GB/s: 0.08 s; a socket's DRAM (100 GB/s) has 50 to
  // carry, so it does not bind.
  const EightGpus node = eight_gpus(25e9, 50e9, 100e9);
  std::vector<TaskCost> copies;
  for (const auto route : node.h2d) copies.push_back(flow(route, kGb));
  check_ends(node.machine, copies, std::vector<double>(8, 0.08));
}

TEST_CASE("all eight GPUs in both directions are limited by the duplex caps", "[sim]") {
  // On each switch two copies up and two down share 40 GB/s, 10 each: 1 GB takes 0.1 s. DRAM: 80
  // of 100 GB/s. Uplinks: 20 of 25 GB/s.
  const EightGpus node = eight_gpus(25e9, 40e9, 100e9);
  std::vector<TaskCost> copies;
  for (const auto route : node.h2d) copies.push_back(flow(route, kGb));
  for (const auto route : node.d2h) copies.push_back(flow(route, kGb));
  check_ends(node.machine, copies, std::vector<double>(16, 0.1));
}

TEST_CASE("eight GPUs and slow DRAM are limited by the DRAM", "[sim]") {
  // Four copies of 1 GB on each socket's 40 GB/s: 10 GB/s each, 0.1 s.
  const EightGpus node = eight_gpus(25e9, 50e9, 40e9);
  std::vector<TaskCost> copies;
  for (const auto route : node.h2d) copies.push_back(flow(route, kGb));
  check_ends(node.machine, copies, std::vector<double>(8, 0.1));
}

TEST_CASE("the optimizer alone runs at its own cap", "[sim]") {
  // 5 GB at min(90, 100) GB/s.
  const EightGpus node = eight_gpus(25e9, 50e9, 100e9);
  check_ends(node.machine, {flow(node.optimizer[0], 5 * kGb)}, {5.0 / 90.0});
}

TEST_CASE("the optimizer and DMA share a socket's DRAM", "[sim]") {
  const EightGpus node = eight_gpus(25e9, 50e9, 100e9);
  const auto update = flow(node.optimizer[0], 5 * kGb);
  SECTION("two copies on two uplinks") {
    // Max-min on 100 GB/s: the copies take their 25 each, 50 are left for the optimizer, all below
    // its fair share of a third. 5 GB / 50 GB/s = 0.1 s; copies of 2.5 GB end at the same time.
    check_ends(node.machine, {update, flow(node.h2d[0], 2.5 * kGb), flow(node.h2d[2], 2.5 * kGb)},
               {0.1, 0.1, 0.1});
  }
  SECTION("two copies up and two down") {
    // Five flows on 100 GB/s: 20 each, below the copies' 25. The 1 GB copies end at 0.05 s; the
    // optimizer has 4 GB left and 90 GB/s: 0.05 + 4 / 90.
    check_ends(node.machine,
               {update, flow(node.h2d[0], kGb), flow(node.h2d[2], kGb), flow(node.d2h[0], kGb),
                flow(node.d2h[2], kGb)},
               {0.05 + 4.0 / 90.0, 0.05, 0.05, 0.05, 0.05});
  }
  SECTION("the other socket's DRAM is not disturbed") {
    check_ends(node.machine, {flow(node.optimizer[1], 5 * kGb), flow(node.h2d[0], kGb)},
               {5.0 / 90.0, 0.04});
  }
}

TEST_CASE("four long copies leave the optimizer a fifth of the DRAM", "[sim]") {
  // Capacity 100, four copies with 25 GB/s links: fair share 20 each. 5 GB at 20 GB/s = 0.25 s
  // while the copies last (5 GB at 20 GB/s, 0.25 s as well).
  MachineBuilder m;
  const auto dram = m.link("dram", 100e9);
  std::vector<TaskCost> tasks{flow(m.route("optimizer", {dram, m.link("cap", 90e9, true)}), 5e9)};
  for (int i = 0; i < 4; ++i) {
    tasks.push_back(flow(m.route("dma", {m.link("pcie", 25e9), dram}), 5e9));
  }
  check_ends(m, tasks, std::vector<double>(5, 0.25));
}

TEST_CASE("a link named twice in a route carries twice the bytes", "[sim]") {
  // 2 x 1 GB / 25 GB/s = 0.08 s.
  MachineBuilder m;
  const auto link = m.link("dram", 25e9);
  check_ends(m, {flow(m.route("bounce", {link, link}), kGb)}, {0.08});
}

TEST_CASE("latency delays a flow and does not weight its share", "[sim]") {
  // From 5 us the first has 25 GB/s alone, until 50 us; then 12.5 each. The first has
  // 1e9 - 25e9 x 45e-6 = 998.875e6 left: ends at 50e-6 + 998.875e6 / 12.5e9 = 0.07996 s. The second
  // then has 1.125e6 left: 0.07996 + 1.125e6 / 25e9 = 0.080005 s.
  MachineBuilder m;
  const auto link = m.link("uplink", 25e9);
  const auto near = m.route("near", {link}, 5e-6), far = m.route("far", {link}, 50e-6);
  check_ends(m, {flow(near, kGb), flow(far, kGb)}, {0.07996, 0.080005});
}

TEST_CASE("a flow of nothing takes the latency only", "[sim]") {
  MachineBuilder m;
  const auto link = m.link("uplink", 25e9);
  check_ends(m, {flow(m.route("near", {link}), 0), flow(m.route("far", {link}, 50e-6), 0)},
             {0.0, 50e-6});
}

TEST_CASE("a task is delayed first and then flows", "[sim]") {
  // 0.01 + 5e-6 + 1 / 25.
  MachineBuilder m;
  TaskCost both = flow(m.route("h2d", {m.link("uplink", 25e9)}, 5e-6), kGb);
  both.exclusive = {0.01};
  check_ends(m, {both, delay(0.5)}, {0.050005, 0.5});
}

TEST_CASE("amounts keep their fractions", "[sim]") {
  // 1234.5 core-nanoseconds on one core of 1e9 a second.
  MachineBuilder m;
  check_ends(m, {flow(m.route("core", {m.link("cores", 1e9)}), 1234.5)}, {1234.5e-9});
}

}  // namespace
}  // namespace offstage::testing
