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

double sum_of(const json& entries, const char* key) {
  double sum = 0.0;
  for (const json& entry : entries) sum += entry[key].get<double>();
  return sum;
}

json explain(const Workspace& workspace) {
  return workspace.run({"plan", "run.yaml", "--explain", "--json"}).json();
}

}  // namespace

TEST_CASE("plan --explain says what each resource needs and where time is lost",
          "[cli][sim][slow]") {
  const Workspace workspace;
  write_small_config(workspace);
  const json plan = explain(workspace);
  const json& resources = plan["explain"]["resources"];
  REQUIRE_FALSE(resources.empty());
  // The first is the bound.
  CHECK(resources[0]["seconds"].get<double>() == Approx(plan["bound_s"].get<double>()));
  CHECK(resources[0]["part"].get<double>() == Approx(plan["efficiency"].get<double>()));
  const json& detail = plan["explain"];
  CHECK(sum_of(detail["lost"], "seconds") ==
        Approx(detail["lost_window_s"].get<double>() - detail["lost_busy_s"].get<double>()));
  for (const json& loss : detail["lost"]) {
    CHECK(loss["seconds"].get<double>() ==
          Approx(loss["forward_s"].get<double>() + loss["backward_s"].get<double>() +
                 loss["turn_s"].get<double>()));
  }
  CHECK(detail["lost_by_engine"].size() == 2);
  CHECK(detail["clipping"].is_null());
  const Outcome text = workspace.run({"plan", "run.yaml", "--explain"});
  CHECK(text.status == 0);
  CHECK_THAT(text.out, Contains("Bound of each resource") &&
                           Contains("GPU compute in a middle step, mean of 2") &&
                           Contains("estimators of others") && Contains("this plan"));
}

TEST_CASE("the estimators of others answer beside the plan, also when it does not fit",
          "[cli][sim]") {
  const Workspace workspace;
  write_small_config(workspace);
  workspace.write("machine.yaml",
                  replaced(offstage::platform::small_virtual(), "memory_bytes: {value: 1GiB",
                           "memory_bytes: {value: 64KiB"));
  const json plan = explain(workspace);
  CHECK(plan["fits"] == false);
  CHECK(plan["explain"]["resources"].empty());
  const json& estimators = plan["explain"]["estimators"];
  REQUIRE(estimators.size() == 14);
  for (const json& estimate : estimators) {
    CHECK_FALSE(estimate["formula"].get<std::string>().empty());
    CHECK_FALSE(estimate["source"].get<std::string>().empty());
  }
  // ZeRO-2 keeps 2 bytes a parameter on each GPU: more than 64 KiB.
  CHECK(estimators[1]["name"] == "DeepSpeed ZeRO-2, optimizer on the CPU");
  CHECK(estimators[1]["gpu_bytes"] == 2 * plan["parameters"].get<std::int64_t>());
  CHECK(estimators[1]["fits"] == false);
}

TEST_CASE("plan --explain says what exact clipping costs", "[cli][sim][slow]") {
  const Workspace workspace;
  workspace.write("run.yaml",
                  "platform: dgx-a100-40\n"
                  "workload: {model: gpt2-xl, sequence_length: 1024, global_batch: 8, "
                  "precision: bf16, optimizer: adamw}\n"
                  "strategy: {clipping: exact, resident_state: 0}\n");
  const json plan = explain(workspace);
  const json& clipping = plan["explain"]["clipping"];
  CHECK(clipping["step_s"] == plan["step_s"]);
  // No update overlaps with backward.
  CHECK(clipping["step_s"].get<double>() > clipping["step_without_s"].get<double>());
  std::int64_t host = 0;
  for (const json& pool : plan["memory"]) {
    if (pool["pool"].get<std::string>().starts_with("host")) {
      host += pool["total_bytes"].get<std::int64_t>();
    }
  }
  CHECK(clipping["host_bytes"] == host);
  CHECK(clipping["host_without_bytes"].get<std::int64_t>() > 0);
  CHECK_THAT(workspace.run({"plan", "run.yaml", "--explain"}).out,
             Contains("Without exact clipping"));
}

TEST_CASE("the explanation of a DGX-A100 plan shares memory among NUMA nodes", "[cli][sim]") {
  const Workspace workspace;
  workspace.write("run.yaml",
                  "platform: dgx-a100-40\n"
                  "workload: {model: gpt2-xl, sequence_length: 1024, global_batch: 8, "
                  "precision: bf16, optimizer: adamw}\n");
  const json plan = explain(workspace);
  const json& numa = plan["explain"]["numa"];
  REQUIRE(numa.size() == 2);
  CHECK(numa[0]["nodes"] == 4);
  // 505 GiB a socket.
  CHECK(numa[0]["capacity_bytes"] == 505LL * 1024 * 1024 * 1024 / 4);
  for (const json& pool : plan["memory"]) {
    CHECK(pool["free_bytes"].get<std::int64_t>() ==
          pool["capacity_bytes"].get<std::int64_t>() - pool["total_bytes"].get<std::int64_t>());
  }
}
