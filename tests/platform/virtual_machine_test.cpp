#include "platform/virtual_machine.h"

#include <filesystem>
#include <string>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "platform/describe.h"
#include "platform/machine_reader.h"
#include "tests/platform/small_machine.h"
#include "tests/support/temporary_path.h"

using namespace offstage;
using namespace offstage::platform;
using Catch::Contains;

namespace {

Machine parse(const std::string& text) {
  return read_machine(Document::parse("small.yaml", text, false));
}

const Link& only_cap(const Machine& machine, RouteId route) {
  const auto& links = machine.routes[route].links;
  REQUIRE(links.size() == 2);
  CHECK(machine.links[links[1]].name == "cores");
  REQUIRE(machine.links[links[0]].caps_each_flow);
  return machine.links[links[0]];
}

}  // namespace

TEST_CASE("everything a virtual GPU does takes time from the same cores", "[platform][unit]") {
  const Machine machine = parse(small_virtual());
  REQUIRE(machine.gpus.size() == 2);
  CHECK(has_virtual_gpus(machine));
  // One thread computes: 1e9 core-nanoseconds a second.
  CHECK(only_cap(machine, *machine.gpus[1].compute_route).capacity.value == BytesPerSecond{1e9});
  // Held to 1 of 4 GB/s, a copy takes a quarter of a core.
  CHECK(only_cap(machine, machine.gpus[0].h2d[0]).capacity.value == BytesPerSecond{0.25e9});
  CHECK(only_cap(machine, machine.gpus[0].d2h[0]).capacity.value == BytesPerSecond{0.25e9});
  // Two threads share an update.
  CHECK(only_cap(machine, machine.sockets[0].optimizer).capacity.value == BytesPerSecond{2e9});
  CHECK(only_cap(machine, *machine.collective_route).capacity.value == BytesPerSecond{1e9});
  CHECK(machine.links[0].capacity.value == BytesPerSecond{2e9});
  CHECK(machine.sockets[0].optimizer_on_cores);
  CHECK(machine.gpu_models[0].peak_bf16.value.value == 0.0);
}

TEST_CASE("the virtual GPUs' memory is taken from the host's", "[platform][unit]") {
  const Machine machine = parse(small_virtual());
  Bytes reserved;
  for (const Reserve& line : machine.pools[machine.sockets[0].pool].reserves) {
    reserved += line.bytes.value;
  }
  // 1 GiB for the system and two GPUs of 1 GiB.
  CHECK(reserved == gibibytes(3));
  CHECK_THROWS_WITH(
      parse(replaced(small_virtual(), "memory_bytes: {value: 1GiB", "memory_bytes: {value: 4GiB")),
      Contains("small.yaml: 2 virtual GPUs of 4.00 GiB") &&
          Contains("use fewer or smaller virtual GPUs"));
}

TEST_CASE("a throttle above a core's rate holds nothing back", "[platform][unit]") {
  const Machine machine = parse(replaced(small_virtual(), "copy_throttle_bytes_per_s: {value: 1e9",
                                         "copy_throttle_bytes_per_s: {value: 9e9"));
  CHECK(only_cap(machine, machine.gpus[0].h2d[0]).capacity.value == BytesPerSecond{1e9});
}

TEST_CASE("a machine that was written reads back the same", "[platform][unit]") {
  const auto path = offstage::temporary_path("virtual_machine.yaml").string();
  Machine machine = parse(small_virtual());
  // Numbers without a short decimal form, and text that YAML would read as something else.
  machine.core_copy_rate->value = BytesPerSecond{1e10 / 3.0};
  machine.gpu_models[0].gemm.value.push_back({Precision::f32, 17, 33, 65, {1e9 / 7.0}});
  machine.description = "a \"quoted\" back\\slash: # not a comment\nand a second line";
  VirtualMachine with_drive = to_virtual(machine);
  with_drive.drive = VirtualDrive{{gibibytes(10), "a \"label\"", Confidence::high},
                                  {{1e10 / 3.0}, "measured", Confidence::medium},
                                  {{1e9}, "a guess", Confidence::assumed}};
  machine = make_machine(with_drive);
  write_machine(machine, path);
  const Machine copy = load_machine(path, "");
  CHECK(copy.drives.size() == 1);
  auto expected = machine_json(make_machine(to_virtual(machine)));
  auto actual = machine_json(copy);
  expected.erase("file");
  actual.erase("file");
  CHECK(actual == expected);
  CHECK(copy.description == machine.description);
  CHECK(copy.file == path);
  std::filesystem::remove(path);
}

TEST_CASE("a machine that can't be written is an error of its own", "[platform][unit]") {
  const Machine machine = parse(small_virtual());
  try {
    write_machine(machine, "no/such/folder/host.yaml");
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::io);
    CHECK_THAT(error.what(), Contains("no/such/folder/host.yaml: can't be written"));
  }
}
