#include "platform/node_changes.h"

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

// The small machine, or another of the folder, as a run config changes it.
class Changed {
 public:
  Changed() {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "small.yaml") << small_node();
    std::ofstream(folder_ / "virtual.yaml") << small_virtual();
  }
  ~Changed() { std::filesystem::remove_all(folder_); }
  Changed(const Changed&) = delete;
  Changed& operator=(const Changed&) = delete;

  Machine read(const std::string& map) const {
    const auto file = (folder_ / "run.yaml").string();
    return read_platform(Document::parse(file, "platform: " + map, false).root().at("platform"),
                         "../platform/catalog");
  }

 private:
  std::filesystem::path folder_ = offstage::temporary_path("node_changes");
};

}  // namespace

TEST_CASE("a run config takes some GPUs of a machine, by number or by name", "[platform][unit]") {
  const Changed changed;
  const Machine one = changed.read("{name: small.yaml, gpus: 1}");
  REQUIRE(one.gpus.size() == 1);
  CHECK(one.gpus[0].name == "gpu0");
  CHECK_FALSE(one.collective_route);
  // host0 and gpu0; the second GPU's memory is no pool of this machine.
  CHECK(one.pools.size() == 2);
  // Without a second GPU no collective library starts: only the context's 1 GiB is taken.
  REQUIRE(one.pools[one.gpus[0].pool].reserves.size() == 1);
  CHECK(one.pools[one.gpus[0].pool].reserves[0].bytes.value == gibibytes(1));

  const Machine other = changed.read("{name: small.yaml, gpus: [gpu1]}");
  REQUIRE(other.gpus.size() == 1);
  CHECK(other.gpus[0].name == "gpu1");
  CHECK(other.gpus[0].speed == 0.5);

  const Machine spread = changed.read("{name: dgx-a100-40, gpus: [gpu4, gpu0]}");
  REQUIRE(spread.gpus.size() == 2);
  CHECK(spread.gpus[0].name == "gpu0");  // in the file's order
  CHECK(spread.gpus[1].socket == 1);
  // The file's curve is of eight GPUs: 4413.4 us for 1 GiB gathered, of which each receives 7/8. Of
  // two each receives 1/2, at the same rate.
  CHECK(collective_time(spread, CollectiveKind::all_gather, gibibytes(1)).value ==
        Approx(4413.4e-6 * (1.0 / 2.0) / (7.0 / 8.0)));
}

TEST_CASE("a run config sets the memory of GPUs and of the host", "[platform][unit]") {
  const Changed changed;
  // 128 GiB instead of 64 GiB: what the system takes, 4 GiB, doubles as well.
  const Machine large =
      changed.read("{name: small.yaml, gpu_memory_bytes: 4GiB, host_memory_bytes: 128GiB}");
  const Pool& host = large.pools[large.sockets[0].pool];
  CHECK(host.capacity.value == gibibytes(128));
  CHECK(host.capacity.source == "as the run config asks");
  REQUIRE(host.reserves.size() == 1);
  CHECK(host.reserves[0].bytes.value == gibibytes(8));
  CHECK(host.reserves[0].bytes.source == "scaled with the memory; test");
  CHECK(large.pools[large.gpus[1].pool].capacity.value == gibibytes(4));

  // With 16 GiB a quarter of it would be 1 GiB, less than any system runs in.
  const Machine small = changed.read("{name: small.yaml, host_memory_bytes: 16GiB}");
  CHECK(small.pools[small.sockets[0].pool].reserves[0].bytes.value == gibibytes(4));

  // Two equal sockets share what is asked for.
  const Machine dgx = changed.read("{name: dgx-a100-80, host_memory_bytes: 1000GB}");
  for (const Socket& socket : dgx.sockets) {
    CHECK(dgx.pools[socket.pool].capacity.value == Bytes{500'000'000'000});
  }
}

TEST_CASE("a calibrated computer plays as many virtual GPUs as a run config asks for",
          "[platform][unit]") {
  const Changed changed;
  const Machine four =
      changed.read("{name: virtual.yaml, virtual_gpus: 4, gpu_memory_bytes: 1MiB}");
  REQUIRE(four.gpus.size() == 4);
  CHECK(four.pools[four.gpus[3].pool].capacity.value == mebibytes(1));
  // Two GPUs gather 1000 B in 1 us, a copy; four make three copies.
  CHECK(collective_time(four, CollectiveKind::all_gather, {1000}).value == Approx(3e-6));
  // A scatter reads two arrays and writes one; of four GPUs five: 1 us x 5 / 3.
  CHECK(collective_time(four, CollectiveKind::reduce_scatter, {1000}).value == Approx(5e-6 / 3));
  // Two ranks on two cores sum in 2 us; four take turns: twice as long.
  CHECK(collective_time(four, CollectiveKind::all_reduce, {1000}).value == Approx(4e-6));
  const Machine one = changed.read("{name: virtual.yaml, virtual_gpus: 1}");
  CHECK(one.gpus.size() == 1);
  CHECK(one.collectives.empty());
}

TEST_CASE("a change that the machine does not allow is refused where it stands",
          "[platform][unit]") {
  const Changed changed;
  const auto refused = [&](const std::string& map, const std::string& message) {
    CAPTURE(map);
    CHECK_THROWS_WITH(changed.read(map), Contains("run.yaml:1:") && Contains(message));
  };
  refused("{name: small.yaml, gpus: 3}", "expected a whole number from 1 to 2");
  refused("{name: small.yaml, gpus: [gpu7]}", "no GPU named 'gpu7'; it has gpu0, gpu1");
  refused("{name: small.yaml, gpus: [gpu1, gpu1]}", "'gpu1' is named twice");
  refused("{name: small.yaml, gpus: []}", "the list is empty; name at least one GPU");
  refused("{name: small.yaml, virtual_gpus: 1}", "virtual_gpus");
  refused("{name: small.yaml, gpu_memory_bytes: 1GiB}", "nothing is left");
  refused("{name: small.yaml, host_memory_bytes: 0}", "host_memory_bytes");
  refused("{name: virtual.yaml, gpus: 1}", "takes virtual_gpus and gpu_memory_bytes");
  refused("{gpus: 1}", "the key 'name' is missing");
}
