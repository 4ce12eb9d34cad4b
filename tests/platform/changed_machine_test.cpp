#include "platform/changed_machine.h"

#include <algorithm>

#include <catch2/catch.hpp>

#include "platform/document.h"
#include "platform/machine_reader.h"
#include "tests/platform/small_machine.h"

using namespace offstage::platform;

namespace {

Machine small() { return read_machine(Document::parse("small.yaml", small_node(), false)); }

const Link& link_named(const Machine& machine, const std::string& name) {
  const auto found = std::ranges::find(machine.links, name, &Link::name);
  REQUIRE(found != machine.links.end());
  return *found;
}

}  // namespace

TEST_CASE("twice the CPU memory leaves the GPUs' and the system's share", "[platform][unit]") {
  const Machine machine = small();
  const Machine larger = with_memory(machine, PoolKind::host, 2);
  for (std::size_t i = 0; i < machine.pools.size(); ++i) {
    const bool host = machine.pools[i].kind == PoolKind::host;
    CHECK(larger.pools[i].capacity.value == machine.pools[i].capacity.value * (host ? 2 : 1));
    CHECK(larger.pools[i].reserves.size() == machine.pools[i].reserves.size());
    if (!host) continue;
    CHECK(larger.pools[i].capacity.confidence == Confidence::assumed);
    CHECK_THAT(larger.pools[i].capacity.source, Catch::Contains("2 times: test"));
  }
}

TEST_CASE("twice the PCIe changes uplinks, lanes and the duplex cap, and no other link",
          "[platform][unit]") {
  const auto faster = with_pcie(small(), 2);
  REQUIRE(faster.has_value());
  // 20 GB/s down, 18 up, 30 together; ports 25; DRAM 100.
  CHECK(link_named(*faster, "switch0.down").capacity.value.value == Approx(40e9));
  CHECK(link_named(*faster, "switch0.up").capacity.value.value == Approx(36e9));
  CHECK(link_named(*faster, "switch0.duplex").capacity.value.value == Approx(60e9));
  CHECK(link_named(*faster, "gpu1.pcie.down").capacity.value.value == Approx(50e9));
  CHECK(link_named(*faster, "socket0.dram").capacity.value.value == Approx(100e9));
  const Machine cores = read_machine(Document::parse("v.yaml", small_virtual(), false));
  CHECK_FALSE(with_pcie(cores, 2).has_value());
}

TEST_CASE("another GPU has memory and ports of its own and shares its neighbour's switch",
          "[platform][unit]") {
  const Machine machine = small();
  const auto more = with_another_gpu(machine);
  REQUIRE(more.has_value());
  REQUIRE(more->gpus.size() == 3);
  const Gpu& old = more->gpus[1];
  const Gpu& fresh = more->gpus[2];
  CHECK(fresh.name == "gpu2");
  CHECK(fresh.socket == old.socket);
  CHECK(fresh.pcie_switch == old.pcie_switch);
  CHECK(fresh.speed == old.speed);
  CHECK(more->pools[fresh.pool].name == "gpu2");
  CHECK(more->pools[fresh.pool].capacity.value == more->pools[old.pool].capacity.value);
  const auto& old_way = more->routes[old.h2d[0]].links;
  const auto& way = more->routes[fresh.h2d[0]].links;
  REQUIRE(way.size() == old_way.size());
  for (std::size_t i = 0; i < way.size(); ++i) {
    const std::string& name = more->links[old_way[i]].name;
    if (name == "gpu1.pcie.down") {
      CHECK(more->links[way[i]].name == "gpu2.pcie.down");
    } else {
      CHECK(way[i] == old_way[i]);
    }
  }
}

TEST_CASE("a collective passes the links of another GPU too", "[platform][unit]") {
  const Machine machine = small();
  REQUIRE(machine.collective_route.has_value());
  const auto more = with_another_gpu(machine);
  // Without NVSwitch it passes every GPU's way home: the new GPU adds its port's two directions.
  CHECK(more->routes[*more->collective_route].links.size() ==
        machine.routes[*machine.collective_route].links.size() + 2);
}

TEST_CASE("another GPU at an NVSwitch has ports of its own there", "[platform][unit]") {
  const auto more = with_another_gpu(load_machine("dgx-a100-40", "../platform/catalog"));
  REQUIRE(more.has_value());
  REQUIRE(more->collective_ports.size() == 9);
  for (const LinkId link : more->collective_ports.back()) {
    CHECK(more->links[link].kind == LinkKind::nvswitch_port);
    CHECK_THAT(more->links[link].name, Catch::StartsWith("gpu8."));
  }
}

TEST_CASE("one GPU alone has no collectives to go by", "[platform][unit]") {
  Machine machine = small();
  machine.gpus.pop_back();
  CHECK_FALSE(with_another_gpu(machine).has_value());
}
