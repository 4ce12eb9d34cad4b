#include "exec/host_address.h"

#include <map>
#include <optional>
#include <string>

#include <catch2/catch.hpp>

#include "platform/error.h"

namespace offstage::exec::testing {
namespace {

Environment environment(const std::map<std::string, std::string>& variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found != variables.end() ? std::optional(found->second) : std::nullopt;
  };
}

TEST_CASE("a host finds its place as torchrun or mpirun tell it", "[exec]") {
  const auto torchrun = find_host_address(environment({{"WORLD_SIZE", "4"},
                                                       {"RANK", "3"},
                                                       {"MASTER_ADDR", "node0"},
                                                       {"MASTER_PORT", "29500"},
                                                       {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                                       {"TORCHELASTIC_RESTART_COUNT", "2"}}),
                                          4);
  REQUIRE(torchrun);
  CHECK(torchrun->rank == 3);
  CHECK(torchrun->hosts == 4);
  CHECK(torchrun->meeting == "node0");
  CHECK(torchrun->port == 29500);
  CHECK(torchrun->kept_by_launcher);
  CHECK(torchrun->attempt == 2);
  const auto mpirun = find_host_address(environment({{"OMPI_COMM_WORLD_SIZE", "2"},
                                                     {"OMPI_COMM_WORLD_RANK", "1"},
                                                     {"MASTER_ADDR", "10.0.0.1"},
                                                     {"MASTER_PORT", "1024"},
                                                     {"GLOO_SOCKET_IFNAME", "eth1"}}),
                                        2);
  REQUIRE(mpirun);
  CHECK(mpirun->rank == 1);
  CHECK_FALSE(mpirun->kept_by_launcher);
  CHECK(mpirun->interface == "eth1");
  CHECK_FALSE(find_host_address(environment({}), 1));
  CHECK_FALSE(find_host_address(environment({{"WORLD_SIZE", "1"}, {"RANK", "0"}}), 1));
}

TEST_CASE("a launcher that does not fit the plan is refused with both numbers", "[exec]") {
  CHECK_THROWS_WITH(find_host_address(environment({{"WORLD_SIZE", "4"}, {"RANK", "0"}}), 2),
                    Catch::Contains("2 hosts") && Catch::Contains("WORLD_SIZE says 4"));
  CHECK_THROWS_WITH(find_host_address(environment({}), 2), Catch::Contains("torchrun"));
  CHECK_THROWS_WITH(find_host_address(environment({{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}}), 2),
                    Catch::Contains("MASTER_ADDR is not set"));
  CHECK_THROWS_WITH(find_host_address(environment({{"WORLD_SIZE", "2"}, {"RANK", "2"}}), 2),
                    Catch::Contains("RANK is '2'") && Catch::Contains("from 0 to 1"));
  CHECK_THROWS_WITH(find_host_address(environment({{"WORLD_SIZE", "two"}}), 2),
                    Catch::Contains("WORLD_SIZE is 'two'"));
}

}  // namespace
}  // namespace offstage::exec::testing
