#include "platform/what_if.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>

#include "platform/collective.h"
#include "platform/machine_reader.h"
#include "tests/platform/small_machine.h"
#include "tests/support/temporary_path.h"

using namespace offstage;
using namespace offstage::platform;
using Catch::Contains;

namespace {

// As a run config that holds `map` has it.
Machine asked(const std::string& map) {
  const auto folder = offstage::temporary_path("what_if");
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "small.yaml") << small_node();
  std::ofstream(folder / "virtual.yaml") << small_virtual();
  const auto file = (folder / "run.yaml").string();
  const auto document = Document::parse(file, "platform: " + map, false);
  try {
    Machine machine = read_platform(document.root().at("platform"), "../platform/catalog");
    std::filesystem::remove_all(folder);
    return machine;
  } catch (...) {
    std::filesystem::remove_all(folder);
    throw;
  }
}

double rate(const Machine& machine, const std::string& name) {
  const auto found = std::ranges::find(machine.links, name, &Link::name);
  REQUIRE(found != machine.links.end());
  return found->capacity.value.value;
}

}  // namespace

TEST_CASE("a run config slows a GPU and gives one other memory", "[platform][unit]") {
  const Machine machine =
      asked("{name: small.yaml, gpu_speeds: {gpu0: 0.8}, gpu_memory_bytes: {gpu1: 4GiB}}");
  CHECK(machine.gpus[0].speed == 0.8);
  CHECK(machine.gpus[1].speed == 0.5);  // the file's
  CHECK(machine.pools[machine.gpus[0].pool].capacity.value == gibibytes(8));
  const Pool& pool = machine.pools[machine.gpus[1].pool];
  CHECK(pool.capacity.value == gibibytes(4));
  CHECK(pool.capacity.confidence == Confidence::assumed);
}

TEST_CASE("another card of the catalog stands in a GPU's slot with its own memory",
          "[platform][unit]") {
  const Machine machine = asked("{name: small.yaml, gpu_models: {gpu1: rtx-4090}}");
  REQUIRE(machine.gpu_models.size() == 2);
  CHECK(machine.gpus[0].model == 0);
  CHECK(machine.gpus[1].model == 1);
  CHECK(machine.gpus[1].speed == 1.0);
  const Machine donor = load_machine("4x4090", "../platform/catalog");
  const Pool& pool = machine.pools[machine.gpus[1].pool];
  CHECK(pool.name == "gpu1");
  CHECK(pool.capacity.value == donor.pools[donor.gpus[0].pool].capacity.value);
  CHECK(pool.reserves.size() == donor.pools[donor.gpus[0].pool].reserves.size());
  CHECK(rate(machine, "gpu1.pcie.down") == 25e9);  // the slot stays

  // Alone it never starts the collective library; in company it does.
  const Machine two = asked("{name: dgx-a100-40, gpus: 2, gpu_models: {gpu0: a100-sxm4-80}}");
  const Machine one = asked("{name: dgx-a100-40, gpus: 1, gpu_models: {gpu0: a100-sxm4-80}}");
  CHECK(two.pools[two.gpus[0].pool].reserves.size() ==
        one.pools[one.gpus[0].pool].reserves.size() + 1);
}

TEST_CASE("links are changed by factor, by rate and several at once", "[platform][unit]") {
  const Machine machine = asked(
      "{name: small.yaml, pcie: 2, dram: 0.5, links: {gpu1.pcie: 0.5, switch0.duplex: "
      "{bytes_per_s: 37e9}}}");
  // Uplink 20 down, 18 up; ports 25; DRAM 100: doubled or halved first, then link by link.
  CHECK(rate(machine, "switch0.down") == Approx(40e9));
  CHECK(rate(machine, "gpu0.pcie.up") == Approx(50e9));
  CHECK(rate(machine, "gpu1.pcie.down") == Approx(25e9));
  CHECK(rate(machine, "gpu1.pcie.up") == Approx(25e9));
  CHECK(rate(machine, "switch0.duplex") == Approx(37e9));
  CHECK(rate(machine, "socket0.dram") == Approx(50e9));
  for (const Link& link : machine.links) {
    CAPTURE(link.name);
    CHECK(link.capacity.confidence == Confidence::assumed);
    CHECK_THAT(link.capacity.source, Catch::StartsWith("assumed") && Contains("test"));
  }
}

TEST_CASE("a port without a cap on both directions together gets one", "[platform][unit]") {
  const Machine machine =
      asked("{name: small.yaml, links: {gpu1.pcie.duplex: {bytes_per_s: 24e9}}}");
  const auto id = static_cast<LinkId>(
      std::ranges::find(machine.links, "gpu1.pcie.duplex", &Link::name) - machine.links.begin());
  REQUIRE(id < machine.links.size());
  const auto passes = [&](RouteId route) {
    return std::ranges::count(machine.routes[route].links, id);
  };
  CHECK(passes(machine.gpus[1].h2d[0]) == 1);
  CHECK(passes(machine.gpus[1].d2h[0]) == 1);
  CHECK(passes(machine.gpus[0].h2d[0]) == 0);
  CHECK(passes(*machine.collective_route) == 1);
}

TEST_CASE("a collective over a slowed link takes at least what its bytes take there",
          "[platform][unit]") {
  const auto time = [](const Machine& machine, CollectiveKind kind) {
    return collective_time(machine, kind, {1'000'000}).value;
  };
  // Of two GPUs each sends half of the megabyte: 50 ms over a port of 10 MB/s, where the curve has
  // 40 us; a sum for all sends it twice.
  const Machine slow = asked("{name: small.yaml, links: {gpu1.pcie.up: {bytes_per_s: 10e6}}}");
  CHECK(time(slow, CollectiveKind::all_gather) == Approx(50e-3));
  CHECK(time(slow, CollectiveKind::all_reduce) == Approx(100e-3));
  // Both ways over a cap of 20 MB/s: as slow. A port as fast as before leaves the curve alone.
  const Machine capped =
      asked("{name: small.yaml, links: {gpu1.pcie.duplex: {bytes_per_s: 20e6}}}");
  CHECK(time(capped, CollectiveKind::all_gather) == Approx(50e-3));
  const Machine same = asked("{name: small.yaml, links: {gpu1.pcie.up: 1}}");
  CHECK(time(same, CollectiveKind::all_gather) == Approx(40e-6));
}

TEST_CASE("other work takes its part of a socket's cores and DRAM", "[platform][unit]") {
  const Machine machine = asked("{name: small.yaml, socket_share: {socket0: 0.3}}");
  CHECK(machine.sockets[0].cores == 2);  // 2.4 of 8
  CHECK(rate(machine, "socket0.dram") == Approx(30e9));
}

TEST_CASE("a run config takes some drives of a machine", "[platform][unit]") {
  CHECK(asked("{name: dgx-a100-80, drives: 2}").drives.size() == 2);
  CHECK(asked("{name: dgx-a100-80, drives: 0}").drives.empty());
  const Machine one = asked("{name: dgx-a100-80, drives: [nvme5], nvme: 2}");
  REQUIRE(one.drives.size() == 1);
  CHECK(rate(one, "nvme5.read") == Approx(12.5e9));
}

TEST_CASE("what nobody can ask of a machine is refused where it stands", "[platform][unit]") {
  const auto refused = [](const std::string& map, const std::string& message) {
    CAPTURE(map);
    CHECK_THROWS_WITH(asked(map), Contains("run.yaml:1:") && Contains(message));
  };
  refused("{name: small.yaml, gpu_speeds: {gpu2: 0.8}}",
          "no GPU named 'gpu2', did you mean 'gpu0'?; it has gpu0, gpu1");
  refused("{name: small.yaml, gpu_speeds: {gpu0: 0}}", "gpu_speeds.gpu0");
  refused("{name: small.yaml, gpu_models: {gpu0: rtx-409}}", "did you mean 'rtx-4090'?");
  refused("{name: small.yaml, gpu_memory_bytes: {gpu0: 1GiB}}", "nothing is left");
  refused("{name: small.yaml, links: {gpu0.pci: 0.5}}", "no link named 'gpu0.pci'");
  refused("{name: small.yaml, links: {gpu0.pcie: {bytes_per_s: 1e9}}}", "is 2 links");
  refused("{name: small.yaml, links: {gpu0.pcie.down: {rate: 1e9}}}", "rate");
  refused("{name: small.yaml, socket_share: {socket0: 1.5}}", "socket_share.socket0");
  refused("{name: small.yaml, drives: 1}", "drives");
  refused("{name: dgx-a100-80, drives: [nvme8]}", "no drive named 'nvme8'");
  refused("{name: virtual.yaml, gpu_speeds: {gpu0: 0.5}}", "takes virtual_gpus and");
}
