#include "exec/guard_rails.h"

#include <filesystem>
#include <optional>

#include <catch2/catch.hpp>

#include "platform/error.h"
#include "tests/exec/fake_device.h"
#include "tests/exec/small_models.h"
#include "tests/exec/training_setup.h"
#include "tests/support/bare_machine.h"

namespace offstage::exec::testing {
namespace {

using platform::Bytes;
using scheduler::make_plan;

scheduler::Plan small_plan() {
  return make_plan(offstage::testing::bare_machine(2), workload(byte_model(gpt2_model()), 8), {});
}

TEST_CASE("a plan must fit into what is free, and into the container", "[exec]") {
  const auto plan = small_plan();
  Bytes all;
  for (const auto& pool : plan.memory.pools) all += pool.planned();
  const Bytes needed = planned_memory(plan, false);
  CHECK(needed == all);  // no drive: every pool is this computer's memory
  const Bytes one_less = needed - Bytes{1};
  const auto room = [](Bytes available, std::optional<Bytes> container = {},
                       std::optional<Bytes> lockable = {}) {
    return HostRoom{
        .memory_available = available, .control_group_left = container, .lockable = lockable};
  };
  CHECK_NOTHROW(require_memory(plan, room(needed), nullptr));
  CHECK_THROWS_WITH(require_memory(plan, room(one_less), nullptr),
                    Catch::Contains("MemAvailable") && Catch::Contains("gpu1"));
  CHECK_THROWS_WITH(require_memory(plan, room(needed, one_less), nullptr),
                    Catch::Contains("container"));
  // Nothing is locked for virtual GPUs.
  CHECK_NOTHROW(require_memory(plan, room(needed, {}, Bytes{0}), nullptr));

  // Real GPUs have memory of their own; what they copy from is locked.
  FakeDevice gpus(2);
  const Bytes on_cpu = planned_memory(plan, true);
  const Bytes on_gpu = plan.memory.pools[plan.machine.gpus[0].pool].planned();
  CHECK(on_cpu == needed - on_gpu - on_gpu);
  gpus.set_free_memory(on_gpu);
  CHECK_NOTHROW(require_memory(plan, room(on_cpu, {}, on_cpu), &gpus));
  CHECK_THROWS_WITH(require_memory(plan, room(on_cpu, {}, on_cpu - Bytes{1}), &gpus),
                    Catch::Contains("ulimit -l"));
  gpus.set_free_memory(on_gpu - Bytes{1});
  CHECK_THROWS_WITH(require_memory(plan, room(on_cpu), &gpus), Catch::Contains("gpu0 leaves"));
}

TEST_CASE("state on a drive takes no memory of the computer", "[exec]") {
  const auto plan =
      make_plan(offstage::testing::bare_machine(2, 1, 2), workload(byte_model(gpt2_model()), 8),
                strategy([](scheduler::Strategy& s) { s.nvme_state = 2; }));
  Bytes all, drives;
  for (const auto& pool : plan.memory.pools) {
    all += pool.planned();
    if (pool.name.starts_with("nvme")) drives += pool.planned();
  }
  CHECK(drives > Bytes{});
  CHECK(planned_memory(plan, false) == all - drives);
}

TEST_CASE("a checkpoint takes 12 bytes a parameter, and the disk is asked before", "[exec]") {
  const auto plan = small_plan();
  CHECK(checkpoint_bytes(plan).value == 12 * plan.parameters());
  const std::string folder = std::filesystem::temp_directory_path().string();
  CHECK_NOTHROW(require_disk(folder, Bytes{1}, "a byte"));
  // An exbibyte.
  CHECK_THROWS_WITH(require_disk(folder, Bytes{std::int64_t{1} << 60}, "a dream"),
                    Catch::Contains("a dream") && Catch::Contains("left on the disk"));
  CHECK_THROWS_AS(require_disk("/nowhere/at/all", Bytes{1}, "a byte"), Error);
}

TEST_CASE("this computer says how much memory it has left", "[exec]") {
  const HostRoom room = read_host_room();
  CHECK(room.memory_available > Bytes{std::int64_t{1} << 20});
}

}  // namespace
}  // namespace offstage::exec::testing
