#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "run_program.h"

using namespace offstage::tests;
using Catch::Contains;
using nlohmann::json;

namespace {

const char* const kZero2 = R"({"train_batch_size": 16, "train_micro_batch_size_per_gpu": 1,
 "bf16": {"enabled": true}, "steps_per_print": 5, "gradient_clipping": 1.0,
 "zero_optimization": {"stage": 2, "overlap_comm": true}})";

std::vector<std::string> import_arguments(const std::string& file,
                                          const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"plan", "--import",   file,          "--model",
                                     "gpt2", "--platform", "dgx-a100-40", "--sequence-length",
                                     "512"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

TEST_CASE("plan --import answers fit and speed, with our own plan beside it", "[cli][sim]") {
  const Workspace workspace;
  workspace.write("ds.json", kZero2);
  const Outcome outcome = workspace.run(import_arguments("ds.json", {"--gpus", "2", "--json"}));
  CHECK(outcome.status == 0);
  const json answer = outcome.json();
  CHECK(answer["imported"]["format"] == "deepspeed");
  CHECK(answer["imported"]["system"] == "zero2");
  CHECK(answer["imported"]["strategy"]["data"] == 2);
  CHECK(answer["fits"] == true);
  CHECK(answer["refused"] == false);
  CHECK(answer["limited_by"].is_null());
  CHECK_FALSE(answer["memory"].empty());
  // 16 sequences of 512 tokens.
  CHECK(answer["tokens_per_s"].get<double>() ==
        Approx(16.0 * 512.0 / answer["step_s"].get<double>()));
  CHECK(answer["own"]["fits"] == true);
  CHECK(answer["own"]["step_s"].get<double>() > 0.0);
  CHECK(answer["own"]["strategy"]["clipping"] == "exact");
  bool found = false;
  for (const json& finding : answer["findings"]) {
    if (finding["key"] != "steps_per_print") continue;
    found = true;
    CHECK(finding["kind"] == "ignored");
    CHECK(finding["line"] == 2);
    CHECK(finding["value"] == "5");
  }
  CHECK(found);
}

TEST_CASE("plan --import exits with 1 when the system does not fit, and says what lacks",
          "[cli][sim]") {
  const Workspace workspace;
  workspace.write("ds.json", R"({"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}})");
  // Llama 2 7B with everything on one GPU: 16 bytes x 6.7e9 parameters = 108 GB > 40 GiB.
  const Outcome outcome =
      workspace.run({"plan", "--import", "ds.json", "--model", "llama-2-7b", "--platform",
                     "dgx-a100-40", "--gpus", "1", "--sequence-length", "512"});
  CHECK(outcome.status == 1);
  CHECK_THAT(outcome.out, Contains("DOES NOT FIT: gpu0 is short by") &&
                              Contains("offstage's own plan, for the same machine"));
}

TEST_CASE("plan --import exits with 2 for faults: findings on stdout, faults on stderr",
          "[cli][sim]") {
  const Workspace workspace;
  workspace.write("ds.json", R"({"train_batch_size": 9,
 "zero_optimization": {"stage": 2, "offload_optimiser": {"device": "cpu"}}})");
  const Outcome outcome = workspace.run(import_arguments("ds.json", {"--json"}));
  CHECK(outcome.status == 2);
  CHECK(outcome.json()["refused"] == true);
  CHECK(outcome.json()["fits"].is_null());
  CHECK_THAT(outcome.err, Contains("ds.json:1:22: train_batch_size: 9 is not") &&
                              Contains("write 'offload_optimizer'"));
  workspace.write("broken.json", "{\"train_batch_size\": 8,}");
  const Outcome broken = workspace.run(import_arguments("broken.json"));
  CHECK(broken.status == 2);
  CHECK(broken.out.empty());
  CHECK_THAT(broken.err, Contains("broken.json:1:23: not valid JSON: a comma in front of '}'"));
}

TEST_CASE("plan takes a config or an import, and an import wants model and platform",
          "[cli][sim]") {
  const Workspace workspace;
  workspace.write("ds.json", kZero2);
  CHECK(workspace.run({"plan"}).status == 2);
  CHECK(workspace.run({"plan", "--model", "gpt2"}).status == 2);
  const Outcome outcome = workspace.run({"plan", "--import", "ds.json"});
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err, Contains("--import needs --model and --platform"));
}
