#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/collective.h"
#include "platform/machine_reader.h"
#include "sim/simulate.h"
#include "tests/support/builders.h"
#include "tests/support/max_min_simulator.h"

// The sharing of sharing_test.cpp on machines of the catalog. On the DGX-A100, expected times are
// written with the catalog's rates, so that a better measurement there needs no change here.
namespace offstage::testing {
namespace {

using platform::Machine;
using scheduler::TaskCost;

constexpr double kGb = 1e9;

class CatalogMachine {
 public:
  explicit CatalogMachine(const std::string& name)
      : machine(platform::load_machine(name, "../platform/catalog")) {}

  double rate(const std::string& link) const {
    for (const auto& candidate : machine.links) {
      if (candidate.name == link) return candidate.capacity.value.value;
    }
    FAIL("no link " << link);
    return 0.0;
  }
  // GPU and socket memory next to it.
  TaskCost h2d(std::size_t gpu, double bytes = kGb) const {
    return flow(machine.gpus[gpu].h2d[machine.gpus[gpu].socket], bytes);
  }
  TaskCost d2h(std::size_t gpu, double bytes = kGb) const {
    return flow(machine.gpus[gpu].d2h[machine.gpus[gpu].socket], bytes);
  }
  double latency() const {
    return machine.routes[machine.gpus[0].h2d[machine.gpus[0].socket]].latency.value;
  }

  Machine machine;
};

struct DgxA100 : CatalogMachine {
  DgxA100() : CatalogMachine("dgx-a100-40") {}
  double down = rate("switch0.down"), up = rate("switch0.up"), duplex = rate("switch0.duplex");
  double dram = rate("socket0.dram");
};

// All tasks start together, on engines of their own, and end at the same time.
void check_all_end_at(const CatalogMachine& dgx, const std::vector<TaskCost>& tasks,
                      double expected) {
  GraphBuilder builder;
  for (const TaskCost& cost : tasks) {
    builder.task({builder.engine("engine" + std::to_string(builder.costs().size()))}, {}, cost);
  }
  const auto result = sim::simulate({dgx.machine, builder.graph(), builder.costs()});
  for (const auto& interval : result.trace.tasks) {
    CHECK(std::abs(interval.end.value - expected) <= 1e-9 * expected);
  }
}

TEST_CASE("on a DGX A100 a lone copy gets the uplink's rate", "[sim]") {
  const DgxA100 dgx;
  check_all_end_at(dgx, {dgx.h2d(0)}, dgx.latency() + kGb / dgx.down);
}

TEST_CASE("on a DGX A100 two GPUs of one switch get half each", "[sim]") {
  const DgxA100 dgx;
  check_all_end_at(dgx, {dgx.h2d(0), dgx.h2d(1)}, dgx.latency() + 2 * kGb / dgx.down);
}

TEST_CASE("on a DGX A100 opposite directions share the duplex cap", "[sim]") {
  const DgxA100 dgx;
  REQUIRE(dgx.duplex / 2 < std::min(dgx.down, dgx.up));
  check_all_end_at(dgx, {dgx.h2d(0), dgx.d2h(0)}, dgx.latency() + 2 * kGb / dgx.duplex);
}

TEST_CASE("on a DGX A100 all eight GPUs at once are held by their uplinks", "[sim]") {
  // Each socket's DRAM feeds two uplinks.
  const DgxA100 dgx;
  REQUIRE(2 * dgx.down < dgx.dram);
  std::vector<TaskCost> copies;
  for (std::size_t gpu = 0; gpu < 8; ++gpu) copies.push_back(dgx.h2d(gpu));
  check_all_end_at(dgx, copies, dgx.latency() + 2 * kGb / dgx.down);
}

TEST_CASE("on a DGX A100 the optimizer and all DMA of its socket share the DRAM", "[sim]") {
  // Eight copies and the optimizer: a ninth of the DRAM each, less than a quarter of a duplex cap,
  // which is what a copy could get. Before the copies' latency is over the optimizer has the DRAM
  // alone; that much more is given to it, so that all end together.
  const DgxA100 dgx;
  REQUIRE(dgx.dram / 9 < dgx.duplex / 4);
  REQUIRE(dgx.machine.routes[dgx.machine.sockets[0].optimizer].links.size() == 1);
  std::vector<TaskCost> tasks{
      flow(dgx.machine.sockets[0].optimizer, kGb + dgx.dram * dgx.latency())};
  for (std::size_t gpu = 0; gpu < 4; ++gpu) {
    tasks.push_back(dgx.h2d(gpu));
    tasks.push_back(dgx.d2h(gpu));
  }
  check_all_end_at(dgx, tasks, dgx.latency() + 9 * kGb / dgx.dram);
}

// What the copies of all GPUs get at once, all the same: down, up or both ways. By the textbook's
// algorithm, since SimGrid can run once in a process.
void check_all_gpus(const std::string& name, double down, double up, double both) {
  CAPTURE(name);
  const CatalogMachine machine(name);
  std::vector<platform::RouteId> downs, ups;
  for (const auto& gpu : machine.machine.gpus) {
    downs.push_back(gpu.h2d[gpu.socket]);
    ups.push_back(gpu.d2h[gpu.socket]);
  }
  auto all = downs;
  all.insert(all.end(), ups.begin(), ups.end());
  const auto check = [&](const std::vector<platform::RouteId>& routes, double expected) {
    for (const double rate : max_min_rates(machine.machine, routes)) {
      CHECK(rate == Approx(expected).epsilon(1e-9));
    }
  };
  check(downs, down);
  check(ups, up);
  check(all, both);
}

TEST_CASE("eight GPUs of a DGX H100 or HGX H200 reach what was measured with all at work",
          "[sim]") {
  // Four GPUs share 220.6 GB/s down (55.15 each, below their ports' 55.4), 179.4 up (44.85) and
  // 224 for eight flows both ways (28.0 each; measured were 33.5 down and 22.5 up, the same in
  // sum).
  for (const char* name : {"dgx-h100", "hgx-h200"}) {
    check_all_gpus(name, 220.6e9 / 4, 179.4e9 / 4, 224e9 / 8);
  }
}

TEST_CASE("sixteen GPUs of a DGX-2 share four uplinks", "[sim]") {
  // 13.18 / 4 = 3.295 GB/s each down, 52.7 a node; 13.27 / 4 = 3.3175 up; both ways the same, but
  // all end together only when the slower direction's bytes are as many as the faster one's time.
  const CatalogMachine dgx2("dgx-2");
  std::vector<TaskCost> tasks;
  for (std::size_t gpu = 0; gpu < 16; ++gpu) {
    tasks.push_back(dgx2.h2d(gpu));
    tasks.push_back(dgx2.d2h(gpu, kGb * 13.27 / 13.18));
  }
  // Each socket moves 2 x (13.18 + 13.27) = 52.9 of its 96 GB/s.
  check_all_end_at(dgx2, tasks, dgx2.latency() + 4 * kGb / 13.18e9);
}

TEST_CASE("both directions of a GH200's C2C share what its memory gives", "[sim]") {
  check_all_gpus("gh200", 346e9, 295.2e9, 364.2e9 / 2);
}

TEST_CASE("four RTX 4090 have a port each, and both ways their CPU's memory is the limit",
          "[sim]") {
  // 4 x 25.6 = 102.4 and 4 x 26.8 = 107.2 of 110 GB/s; eight flows get 110 / 8 = 13.75, less than
  // half of a port's 37.
  check_all_gpus("4x4090", 25.6e9, 26.8e9, 110e9 / 8);
}

TEST_CASE("eight PCIe A100 get half an uplink each, and a quarter of its cap both ways", "[sim]") {
  // 26.2 / 2 = 13.1 and 26.0 / 2 = 13.0 GB/s; both ways 37 / 4 = 9.25. A socket's DRAM carries
  // 8 x 9.25 = 74 of 110.
  check_all_gpus("two-socket-8xa100-pcie", 13.1e9, 13.0e9, 37e9 / 4);
}

TEST_CASE("without NVLink an all-gather holds the PCIe links for its measured time", "[sim]") {
  // 24 us + 0.75 x 2^30 B / 18 GB/s = 44.763 ms, whatever the links' own rates.
  const CatalogMachine machine("4x4090");
  const auto bytes = platform::gibibytes(1);
  const double seconds =
      collective_time(machine.machine, platform::CollectiveKind::all_gather, bytes).value;
  CHECK(seconds == Approx(44.763e-3).epsilon(1e-3));
  const auto route = *machine.machine.collective_route;
  const double rate = scheduler::route_rate(machine.machine, route).value;
  CHECK(rate == 25.6e9);
  check_all_end_at(machine, {flow(route, seconds * rate)}, seconds);
}

}  // namespace
}  // namespace offstage::testing
