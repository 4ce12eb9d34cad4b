#include <cstdint>
#include <string>

#include <catch2/catch.hpp>

#include "run_program.h"
#include "tests/platform/small_machine.h"

using namespace offstage::tests;
using Catch::Contains;
using nlohmann::json;
using offstage::platform::replaced;

namespace {

// The small config on virtual GPUs of `gpu` each. The system leaves 32 MiB of CPU memory, so that
// the answer is a small model, soon simulated.
void write_tight_config(const Workspace& workspace, const std::string& gpu) {
  write_small_config(workspace);
  const std::string tight =
      replaced(offstage::platform::small_virtual(), "host_memory_bytes: {value: 8GiB",
               "host_memory_bytes: {value: 1056MiB");
  workspace.write("machine.yaml",
                  replaced(tight, "memory_bytes: {value: 1GiB", "memory_bytes: {value: " + gpu));
}

}  // namespace

TEST_CASE("capacity --json has the keys that stay stable", "[cli][sim]") {
  const Workspace workspace;
  write_tight_config(workspace, "1MiB");
  const Outcome outcome = workspace.run({"capacity", "run.yaml", "--json", "--out", "plan.json"});
  CHECK(outcome.status == 0);
  const json capacity = outcome.json();
  const json& largest = capacity["max_model"];
  CHECK(largest["parameters"].get<std::int64_t>() > 0);
  CHECK(largest["layers"].get<std::int64_t>() > 0);
  CHECK(largest["hidden"].get<std::int64_t>() > 0);
  CHECK(largest["step_s"].get<double>() > 0.0);
  CHECK_FALSE(largest["name"].get<std::string>().empty());
  CHECK_FALSE(largest["ladder"].get<std::string>().empty());
  CHECK(capacity["max_batch"].get<std::int64_t>() > 0);
  CHECK(capacity.contains("limited_by"));
  REQUIRE(capacity["ladders"].size() == 9);
  // The largest of all rows.
  for (const json& row : capacity["ladders"]) {
    if (row["largest"].is_null()) continue;
    CHECK(row["largest"]["parameters"].get<std::int64_t>() <=
          largest["parameters"].get<std::int64_t>());
  }
  REQUIRE_FALSE(capacity["points"].empty());
  for (const json& point : capacity["points"]) {
    CHECK(point["global_batch"].get<std::int64_t>() <= point["max_batch"].get<std::int64_t>());
    CHECK_FALSE(point["bound_by"].get<std::string>().empty());
  }
  // Virtual GPUs have no PCIe and no drives.
  REQUIRE(capacity["more"].size() == 3);
  for (const json& more : capacity["more"]) {
    if (more["change"] == "one more GPU") continue;
    CHECK(more["parameters_gain"].get<std::int64_t>() >= 0);
    CHECK(more["max_batch_gain"].get<std::int64_t>() >= 0);
  }
  // The plan behind the answer runs.
  const json simulated = workspace.run({"simulate", "plan.json", "--json"}).json();
  CHECK(simulated["step_s"] == largest["step_s"]);
}

TEST_CASE("capacity tells people the same, and draws it", "[cli][sim]") {
  const Workspace workspace;
  write_tight_config(workspace, "1MiB");
  const Outcome outcome = workspace.run({"capacity", "run.yaml", "--svg", "plot.svg"});
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, Contains("Largest model: ") && Contains("Largest batch of ") &&
                              Contains("What more would buy"));
  CHECK_THAT(workspace.read("plot.svg"), Contains("<svg") && Contains("largest batch"));
  const Outcome unwritable = workspace.run({"capacity", "run.yaml", "--svg", "no/such/plot.svg"});
  CHECK(unwritable.status == 3);
  CHECK_THAT(unwritable.err, Contains("no/such/plot.svg"));
}

TEST_CASE("where not even the smallest model fits, the answer is no", "[cli][sim]") {
  const Workspace workspace;
  write_tight_config(workspace, "4KiB");
  const Outcome outcome = workspace.run({"capacity", "run.yaml", "--json"});
  CHECK(outcome.status == 1);
  const json capacity = outcome.json();
  CHECK(capacity["max_model"].is_null());
  CHECK(capacity["max_batch"] == 0);
  CHECK(capacity["limited_by"] == "gpu0");
  CHECK(capacity["points"].empty());
}

TEST_CASE("knobs that count one model's sub-models are refused where they stand", "[cli][sim]") {
  const Workspace workspace;
  write_small_config(workspace);
  workspace.write("run.yaml", replaced(workspace.read("run.yaml"), "strategy: auto",
                                       "strategy: {resident_state: 2}"));
  const Outcome outcome = workspace.run({"capacity", "run.yaml"});
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Contains("run.yaml:") && Contains("resident_state counts sub-models"));
}

TEST_CASE("a plan is no question about capacity", "[cli][sim]") {
  const Workspace workspace;
  write_small_config(workspace);
  REQUIRE(workspace.run({"plan", "run.yaml", "--out", "plan.json"}).status == 0);
  const Outcome outcome = workspace.run({"capacity", "plan.json"});
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err, Contains("plan.json is a plan"));
}
