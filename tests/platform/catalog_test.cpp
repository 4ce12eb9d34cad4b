#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/collective.h"
#include "platform/machine_reader.h"
#include "tests/platform/machine_views.h"

// The machines of the catalog. What copies get of the links they share is tested in
// tests/sim/catalog_test.cpp.
using namespace offstage;
using namespace offstage::platform;
using Catch::Contains;

namespace {

const std::string kCatalog = "../platform/catalog";

}  // namespace

TEST_CASE("the catalog's machines have the parts and the room described", "[platform][unit]") {
  struct Case {
    std::string name;
    std::size_t gpus, sockets, switches, drives;
    double usable_gib;             // of a GPU
    double host_gib;               // of a socket, free
    std::size_t collective_links;  // 0: a lone GPU
  };
  // A GPU's memory less 0.6 GiB of context, 1.5 of NCCL and 1 of workspace; a socket's memory less
  // what the operating system takes.
  const std::vector<Case> cases{
      // 40441.375 MiB - 3.1 GiB; 505 - 17.25 GiB; NVSwitch ports out and in of 8 GPUs
      {"dgx-a100-40", 8, 2, 4, 4, 36.394, 487.75, 16},
      // 81251.19 MiB - 3.1 GiB; 1010 - 34.5 GiB
      {"dgx-a100-80", 8, 2, 4, 8, 76.247, 975.5, 16},
      // 81559 MiB - 3.1 GiB
      {"dgx-h100", 8, 2, 2, 8, 76.547, 975.5, 16},
      // 143771 MiB - 3.1 GiB
      {"hgx-h200", 8, 2, 2, 8, 137.301, 975.5, 16},
      // 97871 MiB - 1.6 GiB (no NCCL); (480 - 16) GB
      {"gh200", 1, 1, 0, 0, 93.977, 432.134, 0},
      // 32510 MiB - 3.1 GiB; 757 - 25.9 GiB
      {"dgx-2", 16, 2, 4, 8, 28.648, 731.1, 32},
      // 24564 MiB - 3.1 GiB; 256 - 8 GiB; DRAM and, of each GPU's port, down, up and duplex
      {"4x4090", 4, 1, 0, 1, 20.888, 248.0, 13},
      // 2 DRAM, down, up and duplex of 4 uplinks, down and up of 8 ports
      {"two-socket-8xa100-pcie", 8, 2, 4, 4, 76.247, 487.75, 30},
      // the same on one socket: 505 - 17.25 GiB in all, one DRAM
      {"one-socket-8xa100-pcie", 8, 1, 4, 4, 76.247, 487.75, 29},
      {"8xa800", 8, 2, 4, 8, 76.247, 487.75, 16},
      // 120 GB - 4 GiB
      {"8xv100", 8, 2, 4, 1, 28.648, 107.759, 16},
      // 24 - 3.1 GiB; 2 DRAM, down, up and duplex of 8 ports
      {"8x3090", 8, 2, 0, 1, 20.9, 248.0, 26}};
  CHECK(cases.size() == catalog_names(kCatalog).size());
  for (const Case& expected : cases) {
    CAPTURE(expected.name);
    const Machine machine = load_machine(expected.name, kCatalog);
    CHECK(machine.name == expected.name);
    REQUIRE(machine.gpus.size() == expected.gpus);
    REQUIRE(machine.sockets.size() == expected.sockets);
    CHECK(machine.switches.size() == expected.switches);
    CHECK(machine.drives.size() == expected.drives);
    for (const Gpu& gpu : machine.gpus) {
      CHECK(free_gibibytes(machine.pools[gpu.pool]) == Approx(expected.usable_gib).epsilon(1e-4));
    }
    for (const Socket& socket : machine.sockets) {
      CHECK(free_gibibytes(machine.pools[socket.pool]) == Approx(expected.host_gib));
    }
    const auto& route = machine.collective_route;
    CHECK((route ? machine.routes[*route].links.size() : 0) == expected.collective_links);
  }
}

TEST_CASE("the catalog's DGX A100 have NUMA nodes and switches as their GPUs see them",
          "[platform][unit]") {
  for (const char* name : {"dgx-a100-40", "dgx-a100-80"}) {
    const Machine machine = load_machine(name, kCatalog);
    const std::vector<int> numa{3, 3, 1, 1, 7, 7, 5, 5};
    for (std::size_t g = 0; g < 8; ++g) {
      CHECK(machine.gpus[g].numa_node == numa[g]);
      CHECK(machine.gpus[g].pcie_switch == g / 2);
      CHECK(machine.gpus[g].socket == g / 4);
    }
    // GPU 6's weights in socket 0's memory cross the socket link.
    CHECK(link_names(machine, machine.gpus[6].h2d[0]) ==
          std::vector<std::string>{"socket0.dram", "socket0-to-socket1", "switch3.down",
                                   "switch3.duplex", "gpu6.pcie.down"});
    CHECK(link_names(machine, machine.gpus[6].d2h[0])[1] == "socket1-to-socket0");
    // The measured point of 1 GiB.
    CHECK(collective_time(machine, CollectiveKind::all_gather, gibibytes(1)).value ==
          Approx(4413.4e-6));
  }
}

TEST_CASE("the catalog's collective curves follow the bus bandwidths they quote",
          "[platform][unit]") {
  // All-reduce of 1 GiB = 1073741824 bytes among n GPUs moves 2 (n - 1) / n of it over each port.
  const auto all_reduce = [](const char* name) {
    const Machine machine = load_machine(name, kCatalog);
    return collective_time(machine, CollectiveKind::all_reduce, gibibytes(1)).value;
  };
  // 1.75 x 1.0737 GB / 466.35 GB/s = 4.029 ms; / 467.58 = 4.019 ms.
  CHECK(all_reduce("dgx-h100") == Approx(4.029e-3).epsilon(1e-3));
  CHECK(all_reduce("hgx-h200") == Approx(4.019e-3).epsilon(1e-3));
  // 1.875 x 1.0737 GB / 120 GB/s + 8.4 us + 30 x 3.4 us = 16.888 ms.
  CHECK(all_reduce("dgx-2") == Approx(16.888e-3).epsilon(1e-3));
  // 1.5 x 1.0737 GB / 18 GB/s + 24 us = 89.502 ms; 1.75 x 1.0737 / 20 + 40 us = 93.992 ms.
  CHECK(all_reduce("4x4090") == Approx(89.502e-3).epsilon(1e-3));
  CHECK(all_reduce("two-socket-8xa100-pcie") == Approx(93.992e-3).epsilon(1e-3));
}

TEST_CASE("the description of a DGX-2 says that its 16-bit rates are fp16", "[platform][unit]") {
  const Machine machine = load_machine("dgx-2", kCatalog);
  CHECK_THAT(machine.description, Contains("fp16: V100 has no bf16 tensor cores"));
  CHECK_THAT(machine.gpu_models[0].peak_bf16.source, Contains("fp16"));
}

TEST_CASE("every number of the catalog says where it is from", "[platform][unit]") {
  for (const auto& name : catalog_names(kCatalog)) {
    CAPTURE(name);
    const Machine machine = load_machine(name, kCatalog);
    for (const Link& link : machine.links) CHECK_FALSE(link.capacity.source.empty());
    for (const Pool& pool : machine.pools) CHECK_FALSE(pool.capacity.source.empty());
    for (const GpuModel& model : machine.gpu_models) {
      CHECK_FALSE(model.gemm.source.empty());
      CHECK_FALSE(model.attention.source.empty());
    }
  }
  // A table's confidence is that of its weakest group, and the source quotes all.
  const Machine dgx = load_machine("dgx-a100-80", kCatalog);
  CHECK(dgx.gpu_models[0].gemm.confidence == Confidence::assumed);
  CHECK_THAT(dgx.gpu_models[0].gemm.source, Contains("[high] ") && Contains("[assumed] "));
}
