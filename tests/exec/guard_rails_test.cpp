#include "exec/guard_rails.h"

#include <filesystem>

#include <catch2/catch.hpp>

#include "platform/error.h"
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
  const Bytes needed = planned_memory(plan);
  CHECK(needed == all);  // no drive: every pool is this computer's memory
  const Bytes one_less = needed - Bytes{1};
  CHECK_NOTHROW(require_memory(plan, {.memory_available = needed, .control_group_left = {}}));
  CHECK_THROWS_WITH(require_memory(plan, {.memory_available = one_less, .control_group_left = {}}),
                    Catch::Contains("MemAvailable") && Catch::Contains("gpu1"));
  CHECK_THROWS_WITH(
      require_memory(plan, {.memory_available = needed, .control_group_left = one_less}),
      Catch::Contains("container"));
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
  CHECK(planned_memory(plan) == all - drives);
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
