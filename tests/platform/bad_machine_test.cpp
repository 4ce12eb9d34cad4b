#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "platform/machine_reader.h"
#include "tests/platform/small_machine.h"

using namespace offstage;
using namespace offstage::platform;
using Catch::Contains;

namespace {

struct Case {
  std::string from, to;  // one change to a good file
  std::string at;        // text on the line the message must name
  std::string message;   // what is wrong and what to do
};

void check_each(const std::string& good, const std::vector<Case>& cases) {
  for (const Case& bad : cases) {
    CAPTURE(bad.from, bad.to);
    const std::string text = replaced(good, bad.from, bad.to);
    REQUIRE(text != good);
    const auto at = text.find(bad.at);
    REQUIRE(at != std::string::npos);
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    try {
      read_machine(Document::parse("bad.yaml", text, false));
      FAIL_CHECK("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::bad_input);
      CHECK_THAT(error.what(), Contains("bad.yaml:" + std::to_string(line) + ":"));
      CHECK_THAT(error.what(), Contains(bad.message));
    }
  }
}

const std::string kGpus =
    "gpus:\n  - {name: gpu0, model: card, parent: switch0, link: port, numa_node: 1}\n"
    "  - {name: gpu1, model: card, parent: switch0, link: port, speed: 0.5}\n";

}  // namespace

TEST_CASE("a broken machine file is refused with place and remedy", "[platform][unit]") {
  check_each(
      small_node(),
      {
          {"kind: node", "kind: nodes", "kind:", "expected one of node, virtual"},
          {"kind: node\n", "", "name: small", "the key 'kind' is missing; add it"},
          {"name: small", "name: 7", "name: 7", "expected text, got '7'; put quotes around it"},
          {"name: small", "name: [small]", "name: [", "expected text, got a list"},
          {"copy_latency_s:", "copy_latencys:", "copy_latencys", "did you mean 'copy_latency_s'?"},
          {"copy_latency_s: {value: 1e-6", "copy_latency_s: {value: -1e-6", "copy_latency_s",
           "expected a number from 1e-15 to 1000"},
          {kGpus, "gpus: []\n", "gpus:", "the list is empty; a machine has at least one GPU"},
          {kGpus, "gpus: {}\n", "gpus:", "expected a list, got a map"},
          {kGpus, "", "kind: node", "the key 'gpus' is missing; add it"},
          {"parent: socket0", "parent: socket9", "parent: socket9",
           "no socket or switch is named 'socket9', did you mean 'socket0'?; known: socket0, "
           "switch0"},
          {"parent: socket0", "parent: switch0", "parent: switch0, link: uplink",
           "the parents form a cycle: switch0 -> switch0; the chain must end at a socket"},
          {"  - {name: switch0, parent: socket0, link: uplink}",
           "  - {name: switch0, parent: switch1, link: uplink}\n"
           "  - {name: switch1, parent: switch2, link: uplink}\n"
           "  - {name: switch2, parent: switch0, link: uplink}",
           "name: switch0, parent: switch1",
           "switch0 -> switch1 -> switch2 -> switch0; the chain must end at a socket"},
          {"  - {name: switch0, parent: socket0, link: uplink}",
           "  - {name: below, parent: switch0, link: uplink}\n"
           "  - {name: switch0, parent: switch1, link: uplink}\n"
           "  - {name: switch1, parent: switch0, link: uplink}",
           "name: below", "the parents form a cycle"},
          {"name: gpu1, model: card", "name: gpu1, model: cart", "gpu1",
           "no GPU model is named 'cart', did you mean 'card'?"},
          {"name: gpu1", "name: gpu0", "speed: 0.5", "a second GPU named 'gpu0'; rename one"},
          {"speed: 0.5", "speed: 0", "gpu1", "expected a number from 0.01 to 100, got '0'"},
          {"numa_node: 1}", "numa_node: 5}", "gpu0", "socket0 has no NUMA node 5; it has 0, 1"},
          {"link: port, speed", "link: prt, speed", "gpu1", "no PCIe link is named 'prt'"},
          {"down_bytes_per_s: {value: 20e9", "down_bytes_per_s: {value: -20e9", "-20e9",
           "expected a number from 1 to 1e+15"},
          {"down_bytes_per_s: {value: 20e9", "down_bytes_per_s: {value: 0", "value: 0,",
           "expected a number from 1 to 1e+15"},
          {"down_bytes_per_s: {value: 20e9", "down_bytes_per_s: {value: 20e30", "20e30",
           "expected a number from 1 to 1e+15"},
          {"down_bytes_per_s: {value: 20e9", "down_bytes_per_s: {value: .inf", ".inf",
           "expected a number from 1 to 1e+15"},
          {"down_bytes_per_s: {value: 20e9", "down_bytes_per_s: {value: 20 GB/s", "20 GB/s",
           "expected a number from 1 to 1e+15"},
          {"down_bytes_per_s: {value: 20e9, source: test,", "down_bytes_per_s: {value: 20e9,",
           "value: 20e9", "the key 'source' is missing; add it"},
          {"down_bytes_per_s: {value: 20e9, source: test,",
           "down_bytes_per_s: {value: 20e9, source: '',", "value: 20e9",
           "say where the number is from"},
          {"down_bytes_per_s: {value: 20e9, source: test, confidence: high}",
           "down_bytes_per_s: 20e9", "20e9",
           "expected a map with the keys value, source, confidence"},
          {"down_bytes_per_s: {value: 20e9, source: test, confidence: high}",
           "down_bytes_per_s: {value: 20e9, source: test, confidence: sure}", "sure",
           "expected one of high, medium, low, assumed"},
          {"memory_bytes: {value: 8GiB", "memory_bytes: {value: 1GiB", "memory_bytes: {value: 1GiB",
           "nothing is left"},
          {"memory_bytes: {value: 64GiB", "memory_bytes: {value: 3GiB", "name: socket0",
           "reserves take 4294967296 of 3221225472 bytes"},
          {"memory_bytes: {value: 64GiB", "memory_bytes: {value: 64 gigs", "64 gigs",
           "such as 80GiB"},
          {"cores: 8", "cores: 8.5", "cores:", "expected a whole number from 1 to 65536"},
          {"numa_nodes: [0, 1]", "numa_nodes: 0", "numa_nodes", "expected a list, got '0'"},
          {"      - precision: bf16\n        source: test\n        confidence: high\n        "
           "points:\n"
           "          - [1024, 1024, 1024, 50e12]\n",
           "      []\n", "[]", "the table has no points; measure at least one"},
          {"[1024, 1024, 1024, 50e12]", "[1024, 1024, 50e12]", "[1024, 1024, 50e12]",
           "expected 4 numbers (m, n, k, FLOP/s), got 3"},
          {"[1024, 1024, 1024, 50e12]", "[1024, 1024, 1024, 50e15]", "- precision: bf16",
           "exceeds the peak, 1e+14; correct one"},
          {"          - [1024, 1024, 1024, 50e12]",
           "          - [1024, 1024, 1024, 50e12]\n          - [1024, 1024, 1024, 60e12]", "60e12",
           "this shape is in the table already"},
          {"precision: bf16", "precision: fp16", "fp16", "expected one of bf16, f32"},
          {"launches_overlap: true", "launches_overlap: 1", "launches_overlap",
           "expected true or false, got '1'"},
          {"- [1000000, 40e-6]", "- [1000, 40e-6]", "- [1000, 40e-6]",
           "sizes must increase, but 1000 follows 1000; sort the points"},
          {"kind: reduce_scatter", "kind: all_gather  # again", "# again", "keep one"},
          {"  - kind: all_reduce\n    source: test\n    confidence: high\n    points:\n"
           "      - [1000, 10e-6]\n",
           "", "  - kind: all_gather", "the curve of all_reduce is missing"},
          {"switches:\n",
           "socket_links:\n  - {between: [socket0, socket0], bytes_per_s: "
           "{value: 1e9, source: test, confidence: low}}\nswitches:\n",
           "between", "expected two different sockets"},
          {"switches:\n",
           "  - name: socket1\n    cores: 8\n    numa_nodes: [2]\n"
           "    memory_bytes: {value: 1GiB, source: test, confidence: low}\n"
           "    dram_bytes_per_s: {value: 1e9, source: test, confidence: low}\nswitches:\n",
           "kind: node", "no link joins socket0 and socket1; add one to socket_links"},
          {"collectives:\n",
           "drives:\n  - {name: nvme0, model: fast, parent: socket0}\ncollectives:\n",
           "model: fast", "no drive model is named 'fast'"},
      });
}

TEST_CASE("a broken machine of virtual GPUs is refused with place and remedy", "[platform][unit]") {
  check_each(
      small_virtual(),
      {
          {"virtual_gpus: 2", "virtual_gpus: 0", "virtual_gpus",
           "expected a whole number from 1 to 1024, got '0'"},
          {"virtual_gpus: 2", "virtual_gpus: two", "virtual_gpus",
           "expected a whole number from 1 to 1024, got 'two'"},
          {"core_copy_rate_bytes_per_s: {value: 4e9", "core_copy_rate_bytes_per_s: {value: -4e9",
           "core_copy_rate", "expected a number from 1 to 1e+15"},
          {"host_memory_bytes: {value: 8GiB", "host_memory_bytes: {value: 9EiB",
           "host_memory_bytes", "such as 80GiB"},
          {"  launches_overlap: false", "  reserves: []\n  launches_overlap: false", "reserves: []",
           "virtual GPUs reserve nothing"},
          {"collectives:", "collective:", "collective:", "did you mean 'collectives'?"},
      });
}

TEST_CASE("a truncated machine file is refused wherever it ends", "[platform][unit]") {
  const std::string good = small_node();
  // After the first GPU the file is that of a complete machine; before it, something is missing.
  const std::size_t first_gpu = good.find("gpus:");
  for (std::size_t length = 0; length < first_gpu; length += 7) {
    CAPTURE(length);
    CHECK_THROWS_AS(read_machine(Document::parse("cut.yaml", good.substr(0, length), false)),
                    Error);
  }
}
