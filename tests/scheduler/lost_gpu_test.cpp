#include "scheduler/lost_gpu.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "platform/document.h"
#include "platform/error.h"
#include "platform/machine_reader.h"
#include "tests/support/temporary_path.h"

namespace offstage::scheduler {
namespace {

// What offstage ships; tests run in tests/.
const DataDirectories kData{"../platform/catalog", "../workloads/models",
                            "../calibration/profiles"};

// A run config that lasts as long as it takes to read.
RunConfig config(const std::string& platform, const std::string& more) {
  const auto path = temporary_path("lost_gpu.yaml");
  std::ofstream(path) << "platform: " << platform << "\n"
                      << more << R"(workload:
  model: gpt2
  sequence_length: 128
  global_batch: 64
  precision: bf16
  optimizer: adamw
)";
  const RunConfig read = load_run_config(path.string(), kData);
  std::filesystem::remove(path);
  return read;
}

const platform::Link& link_named(const platform::Machine& machine, const std::string& name) {
  for (const auto& link : machine.links) {
    if (link.name == name) return link;
  }
  throw Error(ErrorCode::bad_input, name);
}

}  // namespace

TEST_CASE("the machine without a GPU keeps what a config changed of the others",
          "[scheduler][unit]") {
  const RunConfig before = config(
      "{name: dgx-a100-40, gpu_speeds: {gpu3: 0.5, gpu5: 0.7}, gpu_memory_bytes: {gpu3: 30GB}, "
      "links: {gpu3.pcie: 0.5, gpu6.pcie: 0.5, switch1.duplex: 0.8}}",
      "strategy: {shares: [8, 8, 8, 4, 9, 9, 9, 9], micro_batch: 1}\n"
      "disturbances:\n"
      "  lost_gpu: {gpu: gpu3, step: 7}\n"
      "  slow_gpus: [{gpu: gpu3, speed: 0.5}, {gpu: gpu5, speed: 0.4}]\n"
      "  links: [{link: gpu3.pcie.up, factor: 0.5}, {link: gpu7.pcie.up, factor: 0.25}]\n");
  REQUIRE(before.disturbances.lost_gpu.has_value());
  CHECK(before.disturbances.lost_gpu->gpu == 3);
  CHECK(before.disturbances.lost_gpu->step == 7);
  const RunConfig left = without_gpu(before, "gpu3", kData);
  REQUIRE(left.machine.gpus.size() == 7);
  CHECK(left.machine.gpus[3].name == "gpu4");
  CHECK(left.machine.gpus[4].speed == 0.7);
  // 26.2 GB/s halved; 49.4 x 0.8.
  CHECK(link_named(left.machine, "gpu6.pcie.down").capacity.value.value == Approx(13.1e9));
  CHECK(link_named(left.machine, "switch1.duplex").capacity.value.value == Approx(39.52e9));
  CHECK_FALSE(left.strategy.shares.has_value());
  CHECK(left.strategy.micro_batch == 1);
  CHECK_FALSE(left.disturbances.lost_gpu.has_value());
  REQUIRE(left.disturbances.slow_gpus.size() == 1);
  CHECK(left.machine.gpus[left.disturbances.slow_gpus[0].gpu].name == "gpu5");
  REQUIRE(left.disturbances.links.size() == 1);
  CHECK(left.machine.links[left.disturbances.links[0].link].name == "gpu7.pcie.up");
  // A plan for what is left names it so that it loads again.
  const auto again = platform::read_platform(
      platform::Document::parse("p.json", left.machine.reference, true).root(), kData.catalog);
  CHECK(again.gpus.size() == 7);
  CHECK(without_gpu(left, "gpu0", kData).machine.gpus.size() == 6);
}

TEST_CASE("a tensor split that no longer comes out even is the planner's again",
          "[scheduler][unit]") {
  const auto before = config("dgx-a100-40", "strategy: {split: tensor, tensor_ways: 4}\n");
  const auto left = without_gpu(before, "gpu0", kData);
  CHECK_FALSE(left.strategy.tensor_ways.has_value());
  CHECK_FALSE(left.strategy.split.has_value());
}

TEST_CASE("of virtual GPUs there is one fewer, and none can be lost twice", "[scheduler][unit]") {
  const auto before =
      config("{name: host, virtual_gpus: 2, gpu_memory_bytes: 64MiB}", "strategy: auto\n");
  const auto left = without_gpu(before, "gpu0", kData);
  REQUIRE(left.machine.gpus.size() == 1);
  CHECK(left.machine.gpus[0].name == "gpu0");
  CHECK(nlohmann::json::parse(left.machine.reference)["virtual_gpus"] == 1);
  CHECK_THROWS_WITH(without_gpu(left, "gpu0", kData), Catch::Contains("it has 1 GPU"));
  CHECK_THROWS_WITH(without_gpu(before, "gpu2", kData), Catch::Contains("without gpu2"));
}

TEST_CASE("virtual GPUs that are left keep their shares of the copy throttle",
          "[scheduler][unit]") {
  const auto before = config(
      "{name: host, virtual_gpus: 3, gpu_memory_bytes: 64MiB, copy_throttle_bytes_per_s: 1e9, "
      "copy_shares: [1, 0.5, 0.25]}",
      "strategy: auto\n");
  const auto left = without_gpu(before, "gpu1", kData);
  REQUIRE(left.machine.gpus.size() == 2);
  CHECK(left.machine.gpus[0].copy_share == 1.0);
  CHECK(left.machine.gpus[1].copy_share == 0.25);
}

TEST_CASE("a lost GPU is one of several, of one host", "[scheduler][unit]") {
  const std::string lost = "strategy: auto\ndisturbances: {lost_gpu: {gpu: gpu0, step: 1}}\n";
  CHECK_THROWS_WITH(config("{name: dgx-a100-40, gpus: 1}", lost),
                    Catch::Contains("only one of several GPUs of one host"));
  CHECK_THROWS_WITH(config("{name: dgx-a100-40, hosts: 2, network_bytes_per_s: 1e9}", lost),
                    Catch::Contains("only one of several GPUs of one host"));
}

}  // namespace offstage::scheduler
