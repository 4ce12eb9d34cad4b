#include "scheduler/systems/system_strategy.h"

#include <string>

#include <catch2/catch.hpp>

#include "platform/document.h"
#include "platform/error.h"

using namespace offstage;
using namespace offstage::scheduler::systems;

namespace {

SystemStrategy read(const std::string& text, std::int64_t gpus = 8) {
  return read_system_strategy(platform::Document::parse("run.yaml", text, false).root(), gpus);
}

void refused(const std::string& text, const std::string& part) {
  INFO(text);
  try {
    read(text);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_input);
    CHECK(error.where());
    CHECK_THAT(error.what(), Catch::Contains(part));
  }
}

}  // namespace

TEST_CASE("sizes left out use all GPUs", "[scheduler][unit]") {
  CHECK(read("{system: zero3}").data == 8);
  CHECK(read("{system: megatron}").tensor == 8);
  // 8 = data x tensor 2 x pipeline 2
  CHECK(read("{system: megatron, tensor: 2, pipeline: 2}").data == 2);
  CHECK(read("{system: megatron, pipeline: 2}").tensor == 4);
  CHECK(read("{system: fsdp}", 2).data == 2);
}

TEST_CASE("a system brings what it is known for", "[scheduler][unit]") {
  const SystemStrategy offload = read("{system: zero3_offload}");
  CHECK(offload.sharding == 3);
  CHECK(offload.parameters == Place::cpu);
  CHECK(offload.optimizer == Place::cpu);
  CHECK(read("{system: zero_offload}").sharding == 2);
  CHECK(read("{system: zero_offload, sharding: 1}").sharding == 1);
  CHECK(read("{system: zero3_offload, optimizer: nvme}").optimizer == Place::nvme);
  CHECK(read("{system: zero3_offload, parameters: gpu}").parameters == Place::gpu);
}

TEST_CASE("every system is known by its name, and has a profile", "[scheduler][unit]") {
  for (const char* name : {"ddp", "zero1", "zero2", "zero3", "fsdp", "zero_offload",
                           "zero3_offload", "megatron", "patrickstar", "harmony"}) {
    const SystemStrategy strategy = read(std::string("{system: ") + name + "}");
    CHECK(to_string(strategy.system) == name);
    CHECK(!default_profile(strategy.system).empty());
  }
}

TEST_CASE("knobs that contradict each other are named", "[scheduler][unit]") {
  refused("{system: zero4}", "zero3");
  refused("{system: zero3, tensr: 2}", "tensor");
  refused("{system: zero3, pipeline: 2}", "pipeline 2 needs system megatron");
  refused("{system: megatron, data: 4, tensor: 4, pipeline: 1}",
          "data 4 x tensor 4 x pipeline 1 are 16 GPUs; the machine has 8");
  refused("{system: megatron, tensor: 3}", "8 GPUs are not a multiple");
  refused("{system: megatron, tensor: 1, sequence_parallel: true}", "needs tensor 2 or more");
  refused("{system: zero2, parameters: cpu}", "parameters on cpu need sharding 3");
  refused("{system: zero3, parameters: cpu}", "need the optimizer there");
  refused("{system: ddp, optimizer: cpu}", "needs sharding 1, 2 or 3");
  refused("{system: zero3_offload, activations: nvme}", "not on nvme");
  refused("{system: zero3_offload, activations: cpu}", "need recompute full");
  refused("{system: megatron, sharding: 2}", "at most the optimizer's state");
}
