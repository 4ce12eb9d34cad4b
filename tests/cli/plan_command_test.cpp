#include <string>

#include <catch2/catch.hpp>

#include "run_program.h"
#include "tests/platform/small_machine.h"

using namespace offstage::tests;
using Catch::Contains;
using nlohmann::json;
using offstage::platform::replaced;

namespace {

// The small config on virtual GPUs of `memory` each.
void write_config_with_memory(const Workspace& workspace, const std::string& memory) {
  write_small_config(workspace);
  workspace.write("machine.yaml",
                  replaced(offstage::platform::small_virtual(), "memory_bytes: {value: 1GiB",
                           "memory_bytes: {value: " + memory));
}

}  // namespace

TEST_CASE("plan --json has the keys that stay stable", "[cli][sim]") {
  const Workspace workspace;
  write_small_config(workspace);
  const Outcome outcome = workspace.run({"plan", "run.yaml", "--json"});
  CHECK(outcome.status == 0);
  const json plan = outcome.json();
  CHECK(plan["fits"] == true);
  CHECK(plan["limited_by"].is_null());
  CHECK(plan["plan_hash"].get<std::string>().size() == 32);
  CHECK(plan["submodels"].get<int>() >= 3);
  CHECK(plan["tasks"].get<int>() > 0);
  CHECK(plan["strategy"].contains("micro_batch"));
  CHECK_FALSE(plan["reasons"].empty());
  CHECK(plan["step_s"].get<double>() > 0.0);
  CHECK(plan["bound_s"].get<double>() > 0.0);
  CHECK_FALSE(plan["bound_by"].get<std::string>().empty());
  // 8 sequences of 32 tokens a step.
  CHECK(plan["tokens_per_s"].get<double>() == Approx(256.0 / plan["step_s"].get<double>()));
  CHECK(plan["efficiency"].get<double>() ==
        Approx(plan["bound_s"].get<double>() / plan["step_s"].get<double>()));
  CHECK(plan["efficiency"].get<double>() <= 1.0 + 1e-9);
}

TEST_CASE("each pool's ledger lines add up to its total", "[cli][sim]") {
  const Workspace workspace;
  write_small_config(workspace);
  const json memory = workspace.run({"plan", "run.yaml", "--json"}).json()["memory"];
  REQUIRE(memory.size() == 3);  // two GPUs and the host
  for (const json& pool : memory) {
    std::int64_t sum = 0;
    for (const json& line : pool["lines"]) sum += line["bytes"].get<std::int64_t>();
    CHECK(sum == pool["total_bytes"]);
    CHECK(pool["total_bytes"] <= pool["capacity_bytes"]);
  }
}

TEST_CASE("a plan that does not fit names the pool, the shortfall and the lines", "[cli][sim]") {
  const Workspace workspace;
  write_config_with_memory(workspace, "64KiB");
  const Outcome text = workspace.run({"plan", "run.yaml", "--out", "plan.json"});
  CHECK(text.status == 1);
  CHECK_THAT(text.out,
             Contains("DOES NOT FIT") && Contains("gpu0 is short by") && Contains("weight slots"));
  CHECK_FALSE(workspace.has("plan.json"));
  const Outcome outcome = workspace.run({"plan", "run.yaml", "--json"});
  CHECK(outcome.status == 1);
  const json plan = outcome.json();
  CHECK(plan["fits"] == false);
  CHECK(plan["limited_by"] == "gpu0");
  CHECK(plan["step_s"].is_null());
  const json& pool = plan["memory"][0];
  CHECK(plan["shortfall_bytes"].get<std::int64_t>() ==
        pool["total_bytes"].get<std::int64_t>() - pool["capacity_bytes"].get<std::int64_t>());
  CHECK_FALSE(pool["lines"].empty());
}

TEST_CASE("simulate and train refuse what does not fit", "[cli][sim]") {
  const Workspace workspace;
  write_config_with_memory(workspace, "64KiB");
  const Outcome outcome = workspace.run({"simulate", "run.yaml", "--json"});
  CHECK(outcome.status == 1);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Contains("gpu0 is short by") && Contains("weight slots"));
}

TEST_CASE("a plan file is shown again and simulated to the same prediction", "[cli][sim]") {
  const Workspace workspace;
  write_small_config(workspace);
  const json made = workspace.run({"plan", "run.yaml", "--out", "plan.json", "--json"}).json();
  const json shown = workspace.run({"plan", "plan.json", "--json"}).json();
  CHECK(shown["plan_hash"] == made["plan_hash"]);
  CHECK(shown["step_s"] == made["step_s"]);
  CHECK(shown["reasons"] == made["reasons"]);
  const json simulated = workspace.run({"simulate", "plan.json", "--json"}).json();
  CHECK(simulated["plan_hash"] == made["plan_hash"]);
  CHECK(simulated["step_s"] == made["step_s"]);
  // The same from the config itself.
  CHECK(workspace.run({"simulate", "run.yaml", "--json"}).json()["step_s"] == made["step_s"]);
}

TEST_CASE("the strategy's fixed knobs are kept", "[cli][sim]") {
  const Workspace workspace;
  write_small_config(workspace);
  workspace.write("run.yaml", replaced(small_config(), "strategy: auto",
                                       "strategy: {micro_batch: 2, layers_per_submodel: 2}"));
  const json strategy = workspace.run({"plan", "run.yaml", "--json"}).json()["strategy"];
  CHECK(strategy["micro_batch"] == 2);
  CHECK(strategy["layers_per_submodel"] == 2);
}

TEST_CASE("simulate --json has the keys that stay stable", "[cli][sim]") {
  const Workspace workspace;
  write_small_config(workspace);
  const json object = workspace.run({"simulate", "run.yaml", "--steps", "4", "--json"}).json();
  for (const char* key : {"step_s", "tokens_per_s", "mfu", "bound_s", "bound_by", "efficiency",
                          "engines", "links", "memory", "tasks", "wall_s"}) {
    CAPTURE(key);
    CHECK(object.contains(key));
  }
  CHECK(object["steps"] == 4);
  for (const json& engine : object["engines"]) {
    CHECK(engine["utilisation"].get<double>() >= 0.0);
    CHECK(engine["utilisation"].get<double>() <= 1.0 + 1e-9);
  }
  for (const json& pool : object["memory"]) {
    CHECK(pool["peak_bytes"].get<std::int64_t>() <= pool["capacity_bytes"].get<std::int64_t>());
  }
}

TEST_CASE("two simulations write the same trace, byte for byte", "[cli][sim]") {
  const Workspace workspace;
  write_small_config(workspace);
  CHECK(workspace.run({"simulate", "run.yaml", "--trace", "one.json"}).status == 0);
  CHECK(workspace.run({"simulate", "run.yaml", "--trace", "two.json"}).status == 0);
  const std::string one = workspace.read("one.json");
  CHECK(one == workspace.read("two.json"));
  CHECK(json::parse(one)["otherData"]["backend"] == "simulated");
  const Outcome compared = workspace.run({"compare", "one.json", "two.json", "--tolerance", "0"});
  CHECK(compared.status == 0);
}

TEST_CASE("simulate takes another policy", "[cli][sim]") {
  const Workspace workspace;
  write_small_config(workspace);
  for (const char* policy : {"fifo", "planned", "critical_path"}) {
    const json object =
        workspace.run({"simulate", "run.yaml", "--policy", policy, "--json"}).json();
    CHECK(object["policy"] == policy);
    // No order of work beats the bound.
    CHECK(object["step_s"].get<double>() >= object["bound_s"].get<double>() * (1.0 - 1e-9));
  }
  const Outcome unknown = workspace.run({"simulate", "run.yaml", "--policy", "best"});
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.err, Contains("critical_path"));
}

TEST_CASE("files that can't be written are failures that name them", "[cli][sim]") {
  const Workspace workspace;
  write_small_config(workspace);
  const Outcome plan = workspace.run({"plan", "run.yaml", "--out", "no/such/plan.json"});
  CHECK(plan.status == 3);
  CHECK_THAT(plan.err, Contains("no/such/plan.json"));
  const Outcome trace = workspace.run({"simulate", "run.yaml", "--trace", "/dev/full"});
  CHECK(trace.status == 3);
  CHECK_THAT(trace.err, Contains("/dev/full"));
}

TEST_CASE("a DGX-A100 question is answered from the catalog", "[cli][sim]") {
  const Workspace workspace;
  workspace.write("run.yaml",
                  "platform: dgx-a100-40\n"
                  "workload: {model: gpt2-xl, sequence_length: 1024, global_batch: 64, "
                  "precision: bf16, optimizer: adamw}\n");
  const Outcome outcome = workspace.run({"plan", "run.yaml"});
  CHECK(outcome.status == 0);
  // The last GPU's shard of what is resident is smaller: the others are padded.
  CHECK_THAT(outcome.out, Contains("gpu0 to gpu6, each") && Contains("Prediction"));
}
