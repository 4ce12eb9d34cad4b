#include "platform/describe.h"

#include <string>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "platform/machine_reader.h"
#include "tests/platform/small_machine.h"

using namespace offstage::platform;
using Catch::Contains;

namespace {

Machine parse(const std::string& text) {
  return read_machine(Document::parse("small.yaml", text, false));
}

}  // namespace

TEST_CASE("a machine is drawn as a tree of who hangs where", "[platform][unit]") {
  const std::string text = describe_machine(parse(small_node()));
  CHECK_THAT(text,
             Contains("small: two GPUs of one switch\n"
                      "|-- socket0: 8 cores, NUMA 0 1, 64.0 GiB of memory\n"
                      "|   |-- socket0.optimizer: 100 GB/s\n"
                      "|   `-- switch0: uplink 20.0 GB/s down, 18.0 GB/s up, 30.0 GB/s both "
                      "ways together\n"
                      "|       |-- gpu0: card, 8.00 GiB, 20.0 GB/s down, 18.0 GB/s up, NUMA 1\n"
                      "|       `-- gpu1: card, 8.00 GiB, 20.0 GB/s down, 18.0 GB/s up, speed "
                      "0.5\n"));
  CHECK_THAT(text, Contains("compute, h2d, d2h, collective"));
  CHECK_THAT(text, !Contains("routes") && !Contains("sources"));
}

TEST_CASE("routes and sources are shown when asked for", "[platform][unit]") {
  const std::string text = describe_machine(parse(small_node()), {.routes = true, .sources = true});
  CHECK_THAT(text, Contains("gpu0.h2d.socket0         socket0.dram, switch0.down, switch0.duplex, "
                            "gpu0.pcie.down"));
  // The ports of both GPUs are alike and make one line.
  CHECK_THAT(text, Contains("gpu0.pcie.down and 1 more"));
}

TEST_CASE("cores are shown as cores", "[platform][unit]") {
  const std::string text = describe_machine(parse(small_virtual()));
  CHECK_THAT(text, Contains("cores: 2 cores") && Contains("copy throttle: 0.25 cores"));
  CHECK_THAT(text, Contains("2.00 ns of core time a parameter, 2 thread(s)"));
}

TEST_CASE("the JSON form holds every number with its source", "[platform][unit]") {
  const auto json = machine_json(parse(small_node()));
  CHECK(json["gpu_models"][0]["memory_bytes"]["value"] == 8589934592);
  CHECK(json["gpu_models"][0]["memory_bytes"]["confidence"] == "high");
  CHECK(json["links"].size() == 8);
  CHECK(json["gpus"][1]["switch"] == "switch0");
  CHECK(json["gpus"][1]["numa_node"].is_null());
  CHECK(json["engines"][3] == "gpu0.collective");
  CHECK(json["collectives"][0]["points"][1]["bytes"] == 1000000);
}
