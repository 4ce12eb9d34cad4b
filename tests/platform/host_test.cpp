#include "platform/host.h"

#include <catch2/catch.hpp>

#include "platform/document.h"

using namespace offstage;
using namespace offstage::platform;
using Catch::Contains;

TEST_CASE("this host is found with the virtual GPUs asked for", "[platform][unit]") {
  const Machine machine = find_host({.virtual_gpus = 2, .gpu_memory = mebibytes(64)});
  REQUIRE(machine.gpus.size() == 2);
  CHECK(machine.pools[machine.gpus[1].pool].capacity.value == mebibytes(64));
  REQUIRE(machine.sockets.size() == 1);
  CHECK(machine.sockets[0].cores >= 1);
  CHECK(machine.pools[machine.sockets[0].pool].capacity.value > mebibytes(128));
  CHECK(machine.default_profile == "offstage-cpu");
}

TEST_CASE("an uncalibrated host says that its rates are guesses", "[platform][unit]") {
  const Machine machine = find_host({.gpu_memory = mebibytes(64)});
  CHECK_THAT(machine.description, Contains("uncalibrated"));
  CHECK(machine.core_copy_rate->confidence == Confidence::assumed);
  CHECK_THAT(machine.core_copy_rate->source, Contains("offstage calibrate"));
  CHECK(machine.gpu_models[0].gemm.confidence == Confidence::assumed);
  CHECK_FALSE(machine.collective_route.has_value());
}

TEST_CASE("options fix what would be found", "[platform][unit]") {
  const Machine machine = find_host({.virtual_gpus = 1,
                                     .gpu_memory = mebibytes(1),
                                     .cores = 3,
                                     .host_memory = gibibytes(2),
                                     .copy_throttle = BytesPerSecond{1e9}});
  CHECK(machine.sockets[0].cores == 3);
  CHECK(machine.links[0].capacity.value == BytesPerSecond{3e9});
  const Pool& host = machine.pools[machine.sockets[0].pool];
  CHECK(host.capacity.value == gibibytes(2));
  // Only the virtual GPU's memory is reserved: what else runs here is the asker's business.
  CHECK(host.reserves.size() == 1);
  CHECK(machine.copy_throttle->value == BytesPerSecond{1e9});
}

TEST_CASE("virtual GPUs may have unlike shares of the copy throttle", "[platform][unit]") {
  const Machine machine = find_host({.virtual_gpus = 2,
                                     .gpu_memory = mebibytes(1),
                                     .copy_throttle = BytesPerSecond{1e8},
                                     .copy_shares = {1.0, 0.25}});
  // A quarter of 1e8 B/s; and of a core, a quarter of the part that the whole throttle keeps busy.
  CHECK(copy_throttle_of(machine, 0) == BytesPerSecond{1e8});
  CHECK(copy_throttle_of(machine, 1) == BytesPerSecond{0.25e8});
  const auto cap = [&](std::size_t gpu) {
    return machine.links[machine.routes[machine.gpus[gpu].h2d[0]].links.front()].capacity.value;
  };
  CHECK(cap(1).value == Approx(0.25 * cap(0).value));
  // What is written can be read back as the same machine.
  CHECK(to_virtual(machine).copy_shares == std::vector<double>{1.0, 0.25});
}

TEST_CASE("a host has the drive it is given and none of itself", "[platform][unit]") {
  CHECK(find_host({.gpu_memory = mebibytes(1)}).drives.empty());
  const Machine machine =
      find_host({.gpu_memory = mebibytes(1),
                 .drive = DriveOptions{gibibytes(100), BytesPerSecond{2e9}, BytesPerSecond{1e9}}});
  REQUIRE(machine.drives.size() == 1);
  const Drive& drive = machine.drives[0];
  CHECK(machine.pools[drive.pool].kind == PoolKind::nvme);
  CHECK(machine.pools[drive.pool].capacity.value == gibibytes(100));
  const auto rate = [&](RouteId route) {
    return machine.links[machine.routes[route].links.front()].capacity;
  };
  CHECK(rate(drive.read[0]).value == BytesPerSecond{2e9});
  CHECK(rate(drive.write[0]).value == BytesPerSecond{1e9});
  CHECK(rate(drive.write[0]).confidence == Confidence::assumed);
}

TEST_CASE("virtual GPUs larger than the host are refused", "[platform][unit]") {
  CHECK_THROWS_WITH(find_host({.virtual_gpus = 4, .gpu_memory = gibibytes(200'000)}),
                    Contains("use fewer or smaller virtual GPUs"));
}

TEST_CASE("host options are read with bounds", "[platform][unit]") {
  const auto options = [](const std::string& text) {
    return read_host_options(Document::parse("run.yaml", text, false).root());
  };
  const HostOptions read = options(
      "{virtual_gpus: 2, gpu_memory_bytes: 64MiB, cores: 1, "
      "copy_throttle_bytes_per_s: 2e9, optimizer_threads: 2}");
  CHECK(read.virtual_gpus == 2);
  CHECK(read.gpu_memory == mebibytes(64));
  CHECK(read.cores == 1);
  CHECK(read.optimizer_threads == 2);
  CHECK(read.copy_throttle == BytesPerSecond{2e9});
  CHECK_THROWS_WITH(options("{virtual_gpus: 2, copy_throttle_bytes_per_s: 1e8, copy_shares: [1]}"),
                    Contains("a share for each of 2 virtual GPUs, got 1"));
  CHECK_THROWS_WITH(options("{copy_shares: [1]}"), Contains("copy_throttle_bytes_per_s"));
  CHECK_THROWS_WITH(options("{virtual_gpus: 0}"),
                    Contains("run.yaml:1:16: virtual_gpus: expected"));
  CHECK_THROWS_WITH(options("{gpu_memory_bytes: lots}"), Contains("such as 80GiB"));
  const HostOptions with_drive =
      options("{drive: {capacity_bytes: 1GiB, read_bytes_per_s: 3e9, write_bytes_per_s: 2e9}}");
  REQUIRE(with_drive.drive.has_value());
  CHECK(with_drive.drive->capacity == gibibytes(1));
  CHECK(with_drive.drive->read == BytesPerSecond{3e9});
  CHECK(with_drive.drive->write == BytesPerSecond{2e9});
  CHECK_THROWS_WITH(options("{drive: {capacity_bytes: 1GiB, read_bytes_per_s: 3e9}}"),
                    Contains("run.yaml:1:9: drive: the key 'write_bytes_per_s' is missing"));
}
