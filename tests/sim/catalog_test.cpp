#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/machine_reader.h"
#include "sim/simulate.h"
#include "tests/support/builders.h"

// The sharing of sharing_test.cpp on the DGX-A100 of the catalog. Expected times are written with
// the catalog's rates, so that a better measurement there needs no change here.
namespace offstage::testing {
namespace {

using platform::Machine;
using scheduler::TaskCost;

constexpr double kGb = 1e9;

class DgxA100 {
 public:
  DgxA100() : machine(platform::load_machine("dgx-a100-40", "../platform/catalog")) {}

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
  double down = rate("switch0.down"), up = rate("switch0.up"), duplex = rate("switch0.duplex");
  double dram = rate("socket0.dram");
};

// All tasks start together, on engines of their own, and end at the same time.
void check_all_end_at(const DgxA100& dgx, const std::vector<TaskCost>& tasks, double expected) {
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

}  // namespace
}  // namespace offstage::testing
