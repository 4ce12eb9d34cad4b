#include <string>

#include <catch2/catch.hpp>

#include "run_program.h"

using namespace offstage::tests;
using Catch::Contains;
using nlohmann::json;

namespace {

// 350 million parameters on two A100.
std::string config(const std::string& strategy, int sequences = 16) {
  return "platform: {name: dgx-a100-40, gpus: 2}\n"
         "workload: {model: gpt3-350m, sequence_length: 1024, global_batch: " +
         std::to_string(sequences) +
         ", precision: bf16, optimizer: adamw}\n"
         "strategy: " +
         strategy + "\n";
}

}  // namespace

TEST_CASE("a published system is planned with the keys of our own plans", "[cli][sim]") {
  const Workspace workspace;
  workspace.write("run.yaml", config("{system: zero_offload, micro_batch: 4}"));
  const Outcome outcome = workspace.run({"plan", "run.yaml", "--json"});
  CHECK(outcome.status == 0);
  const json plan = outcome.json();
  CHECK(plan["fits"] == true);
  CHECK(plan["system"] == "zero_offload");
  CHECK(plan["profile"] == "deepspeed-offload");
  CHECK(plan["strategy"]["data"] == 2);
  CHECK(plan["strategy"]["optimizer"] == "cpu");
  CHECK(plan["step_s"].get<double>() >= plan["bound_s"].get<double>() * (1.0 - 1e-9));
  // 16 sequences of 1,024 tokens a step.
  CHECK(plan["tokens_per_s"].get<double>() == Approx(16384.0 / plan["step_s"].get<double>()));
  for (const json& pool : plan["memory"]) {
    std::int64_t sum = 0;
    for (const json& line : pool["lines"]) sum += line["bytes"].get<std::int64_t>();
    CHECK(sum == pool["total_bytes"]);
  }
  const json simulated = workspace.run({"simulate", "run.yaml", "--json"}).json();
  CHECK(simulated["step_s"] == plan["step_s"]);
  CHECK(simulated["tasks"] == plan["tasks"]);
  CHECK(simulated["mfu"].get<double>() > 0.0);
}

TEST_CASE("a published system's trace opens like any other", "[cli][sim]") {
  const Workspace workspace;
  workspace.write("run.yaml", config("{system: megatron, tensor: 2, micro_batch: 4}"));
  const Outcome outcome = workspace.run({"simulate", "run.yaml", "--trace", "trace.json"});
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, Contains("data 1 x tensor 2 x pipeline 1"));
  const json trace = json::parse(workspace.read("trace.json"));
  CHECK(trace["traceEvents"].size() > 10);
}

TEST_CASE("a published system that does not fit says so with its lines", "[cli][sim]") {
  const Workspace workspace;
  std::string large = config("{system: ddp, micro_batch: 4}");
  large.replace(large.find("gpt3-350m"), 9, "gpt3-6.7b");
  workspace.write("run.yaml", large);
  const Outcome outcome = workspace.run({"plan", "run.yaml", "--json"});
  CHECK(outcome.status == 1);
  const json plan = outcome.json();
  CHECK(plan["fits"] == false);
  CHECK(plan["limited_by"] == "gpu0");
  CHECK(plan["step_s"].is_null());
  const Outcome simulated = workspace.run({"simulate", "run.yaml"});
  CHECK(simulated.status == 1);
  CHECK_THAT(simulated.err, Contains("gpu0 is short by"));
}

TEST_CASE("what a published system can't be asked is refused by name", "[cli][sim]") {
  const Workspace workspace;
  workspace.write("run.yaml", config("{system: fsdp, micro_batch: 4}"));
  for (const std::string command : {"capacity", "train"}) {
    const Outcome outcome = workspace.run({command, "run.yaml"});
    CHECK(outcome.status == 2);
    CHECK_THAT(outcome.err, Contains("run.yaml:3") && Contains(command + " works with offstage"));
  }
  const Outcome explained = workspace.run({"plan", "run.yaml", "--explain"});
  CHECK(explained.status == 2);
  CHECK_THAT(explained.err, Contains("--explain and --out are for offstage's own plans"));
  const Outcome reordered = workspace.run({"simulate", "run.yaml", "--policy", "fifo"});
  CHECK(reordered.status == 2);
  CHECK_THAT(reordered.err, Contains("has its own order"));

  workspace.write("odd.yaml", config("{system: fsdp, micro_batch: 3}"));
  const Outcome odd = workspace.run({"plan", "odd.yaml"});
  CHECK(odd.status == 2);
  CHECK_THAT(odd.err, Contains("odd.yaml:2") && Contains("no multiple of data 2 x micro_batch 3"));
}
