#include "platform/hosts.h"

#include <utility>

namespace offstage::platform {
namespace {

constexpr int kMostHosts = 65536;
constexpr double kHighestRate = 1e15;  // bytes a second, as for other rates of a run config

}  // namespace

void read_hosts(const Node& map, Machine& machine) {
  const auto hosts = map.find("hosts");
  const auto rate = map.find("network_bytes_per_s");
  const auto count = hosts ? static_cast<int>(hosts->integer(1, kMostHosts)) : 1;
  if (count == 1) {
    if (rate) throw rate->error("one host has no network: `hosts` says how many there are");
    return;
  }
  if (!rate) {
    throw hosts->error(
        "several hosts need network_bytes_per_s, what each sends to the others: 1.25e9 for 10 "
        "Gbit/s Ethernet");
  }
  join_hosts(machine, count,
             {BytesPerSecond{rate->number(1.0, kHighestRate)}, "as the run config asks",
              Confidence::medium});
}

void join_hosts(Machine& machine, int hosts, Sourced<BytesPerSecond> network) {
  OFFSTAGE_CHECK(machine.hosts == 1 && hosts >= 2, "hosts are joined once");
  machine.hosts = hosts;
  machine.links.push_back({"network", LinkKind::network, std::move(network), false});
  machine.routes.push_back({"network", {machine.links.size() - 1}, {}});
  machine.network_route = machine.routes.size() - 1;
}

double ring_bytes(int hosts, Bytes buffer) {
  return 2.0 * (hosts - 1) / hosts * static_cast<double>(buffer.value);
}

}  // namespace offstage::platform
