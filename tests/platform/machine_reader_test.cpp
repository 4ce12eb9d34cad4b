#include "platform/machine_reader.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "tests/platform/machine_views.h"
#include "tests/platform/small_machine.h"
#include "tests/support/temporary_path.h"

using namespace offstage;
using namespace offstage::platform;
using Catch::Contains;

namespace {

const std::string kCatalog = "../platform/catalog";

Machine parse(const std::string& text) {
  return read_machine(Document::parse("small.yaml", text, false));
}

}  // namespace

TEST_CASE("the small machine's parts are where the file hangs them", "[platform][unit]") {
  const Machine machine = parse(small_node());
  REQUIRE(machine.gpus.size() == 2);
  REQUIRE(machine.sockets.size() == 1);
  CHECK(machine.gpus[0].numa_node == 1);
  CHECK(machine.gpus[0].pcie_switch == 0);
  CHECK(machine.gpus[1].speed == 0.5);
  CHECK(
      link_names(machine, machine.gpus[1].h2d[0]) ==
      std::vector<std::string>{"socket0.dram", "switch0.down", "switch0.duplex", "gpu1.pcie.down"});
  CHECK(link_names(machine, machine.gpus[0].d2h[0]) ==
        std::vector<std::string>{"socket0.dram", "switch0.up", "switch0.duplex", "gpu0.pcie.up"});
  CHECK(machine.routes[machine.gpus[0].h2d[0]].latency == Seconds{1e-6});
  CHECK(link_names(machine, machine.sockets[0].optimizer) ==
        std::vector<std::string>{"socket0.dram"});
  // 8 GiB less 1 GiB of context and half a GiB of collective buffers.
  CHECK(free_gibibytes(machine.pools[machine.gpus[0].pool]) == 6.5);
  CHECK_FALSE(has_virtual_gpus(machine));
}

TEST_CASE("without NVSwitch a collective crosses every PCIe link once", "[platform][unit]") {
  const Machine machine = parse(small_node());
  auto names = link_names(machine, *machine.collective_route);
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"gpu0.pcie.down", "gpu0.pcie.up", "gpu1.pcie.down",
                                          "gpu1.pcie.up", "socket0.dram", "switch0.down",
                                          "switch0.duplex", "switch0.up"});
}

TEST_CASE("an optimizer's own limit caps each update beside DRAM", "[platform][unit]") {
  const Machine machine =
      parse(replaced(small_node(), "    dram_bytes_per_s:",
                     "    optimizer_bytes_per_s: {value: 70e9, source: test, confidence: low}\n"
                     "    dram_bytes_per_s:"));
  const auto& links = machine.routes[machine.sockets[0].optimizer].links;
  REQUIRE(links.size() == 2);
  CHECK(machine.links[links[0]].caps_each_flow);
  CHECK(machine.links[links[0]].capacity.value == BytesPerSecond{70e9});
  CHECK(machine.links[links[1]].name == "socket0.dram");
}

TEST_CASE("switches may stand below switches, in any order", "[platform][unit]") {
  auto text = replaced(small_node(), "switches:\n",
                       "switches:\n  - {name: leaf, parent: switch0, link: port}\n");
  text = replaced(text, "name: gpu1, model: card, parent: switch0",
                  "name: gpu1, model: card, parent: leaf");
  const Machine machine = parse(text);
  CHECK(link_names(machine, machine.gpus[1].h2d[0]) ==
        std::vector<std::string>{"socket0.dram", "switch0.down", "switch0.duplex", "leaf.down",
                                 "gpu1.pcie.down"});
  CHECK(machine.switches[0].parent == 1);
}

TEST_CASE("a machine with one GPU needs no collectives", "[platform][unit]") {
  auto text = small_node();
  text = replaced(text, "  - {name: gpu1, model: card, parent: switch0, link: port, speed: 0.5}\n",
                  "");
  text.erase(text.find("collectives:"));
  const Machine machine = parse(text);
  CHECK_FALSE(machine.collective_route.has_value());
  CHECK(machine.collectives.empty());
}

TEST_CASE("an unknown name lists the known ones and the nearest", "[platform][unit]") {
  CHECK_THROWS_WITH(load_machine("dgx-a100-81", kCatalog),
                    Contains("no platform is named 'dgx-a100-81', did you mean 'dgx-a100-80'?") &&
                        Contains("host") && Contains("path of a .yaml file"));
  CHECK_THROWS_WITH(load_machine("missing/machine.yaml", kCatalog), Contains("no such file"));
}

TEST_CASE("a run config names a platform, a file beside it, or this host with options",
          "[platform][unit]") {
  const auto folder = offstage::temporary_path("machine_reader");
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "small.yaml") << small_node();
  const auto platform = [&](const std::string& value) {
    const auto file = (folder / "run.yaml").string();
    return read_platform(Document::parse(file, "platform: " + value, false).root().at("platform"),
                         kCatalog);
  };
  CHECK(platform("dgx-a100-40").name == "dgx-a100-40");
  CHECK(platform("small.yaml").name == "small");
  const Machine host = platform("{name: host, virtual_gpus: 3, gpu_memory_bytes: 1MiB}");
  CHECK(host.gpus.size() == 3);
  CHECK(host.pools[host.gpus[2].pool].capacity.value == mebibytes(1));
  CHECK_THROWS_WITH(platform("dgx-a10-40"),
                    Contains("run.yaml:1:11: platform: no platform is named"));
  CHECK_THROWS_WITH(platform("lost.yaml"), Contains("run.yaml:1:11: platform: no such file"));
  CHECK_THROWS_WITH(platform("{name: dgx-a100-40, virtual_gpus: 2}"),
                    Contains("run.yaml:1:") && Contains("'virtual_gpus'") && Contains("gpus"));
  CHECK_THROWS_WITH(platform("{name: host, virtual_gpu: 2}"), Contains("did you mean"));
  std::filesystem::remove_all(folder);
}
