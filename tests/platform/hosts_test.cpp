#include "platform/hosts.h"

#include <string>

#include <catch2/catch.hpp>

#include "platform/machine_reader.h"

using namespace offstage;
using namespace offstage::platform;
using Catch::Contains;

namespace {

Machine read(const std::string& map) {
  return read_platform(Document::parse("run.yaml", "platform: " + map, false).root().at("platform"),
                       "../platform/catalog");
}

}  // namespace

TEST_CASE("a run config says how many hosts train together, and over what", "[platform][unit]") {
  const Machine alone = read("{name: dgx-a100-40, hosts: 1}");
  CHECK(alone.hosts == 1);
  CHECK_FALSE(alone.network_route);

  for (const char* name : {"dgx-a100-40", "host"}) {
    const Machine one =
        read(std::string("{name: ") + name + ", hosts: 3, network_bytes_per_s: 2e9}");
    CHECK(one.hosts == 3);
    REQUIRE(one.network_route);
    const Route& route = one.routes[*one.network_route];
    REQUIRE(route.links.size() == 1);
    CHECK(one.links[route.links[0]].kind == LinkKind::network);
    CHECK(one.links[route.links[0]].capacity.value.value == 2e9);
  }
}

TEST_CASE("hosts without a network's rate, and a network without hosts, are refused",
          "[platform][unit]") {
  CHECK_THROWS_WITH(read("{name: host, hosts: 2}"),
                    Contains("platform.hosts") && Contains("network_bytes_per_s"));
  CHECK_THROWS_WITH(read("{name: host, network_bytes_per_s: 1e9}"), Contains("one host"));
  CHECK_THROWS_WITH(read("{name: dgx-a100-40, hosts: 0}"), Contains("hosts"));
}

TEST_CASE("around a ring each host sends a buffer's parts twice, but for its own",
          "[platform][unit]") {
  // 2 (n-1)/n of it: 1 of 2 parts, twice; 3 of 4 parts, twice.
  CHECK(ring_bytes(2, Bytes{100}) == Approx(100.0));
  CHECK(ring_bytes(4, Bytes{100}) == Approx(150.0));
}
