#include <string>

#include <catch2/catch.hpp>

#include "run_program.h"

using namespace offstage::tests;
using Catch::Contains;
using nlohmann::json;

namespace {

const std::string kHeader =
    "id,n_gpus,global_batch,micro_batch,hidden,heads,layers,sequence_length,tensor,data,pipeline,"
    "vocab,step_s\n";
// Two models; the second row of the first one is left out by --rows-per-model 1.
const std::string kRows = kHeader +
                          "one,2,4,1,1024,16,12,1024,2,1,1,50257,0.2\n"
                          "same,2,8,1,1024,16,12,1024,2,1,1,50257,0.4\n"
                          "two,2,4,1,2048,16,12,1024,2,1,1,50257,0.25\n";

}  // namespace

TEST_CASE("calibrate --fit fits a profile to published steps and predicts each model left out",
          "[cli][sim]") {
  const Workspace workspace;
  workspace.write("rows.csv", kRows);
  const Outcome outcome = workspace.run(
      {"calibrate", "--fit", "megatron-deepspeed-2023", "--reference", "rows.csv", "--free",
       "memory_efficiency,launch_interval_s", "--rows-per-model", "1", "--json"});
  CHECK(outcome.status == 0);
  const json fit = outcome.json();
  CHECK(fit["rows"] == 2);
  REQUIRE(fit["groups"].size() == 2);
  CHECK(fit["groups"][0]["group"] == "vtrain 12 x 1024");
  REQUIRE(fit["values"].size() == 2);
  CHECK(fit["values"][0]["name"] == "memory_efficiency");
  CHECK(fit["values"][0]["least"] <= fit["values"][0]["value"]);
  CHECK(fit["range"]["low"] <= fit["range"]["high"]);
  // The file is a profile again.
  CHECK_THAT(workspace.read("megatron-deepspeed-2023.yaml"),
             Contains("fitted to 2 published steps") && Contains("step_range:"));
  const Outcome again = workspace.run({"calibrate", "--fit", "./megatron-deepspeed-2023.yaml",
                                       "--reference", "rows.csv", "--free", "memory_efficiency"});
  CHECK(again.status == 0);
  CHECK_THAT(again.out, Contains("3 steps") && Contains("left out"));
}

TEST_CASE("calibrate --fit says what can't be fitted", "[cli][sim]") {
  const Workspace workspace;
  workspace.write("rows.csv", kHeader + "one,2,4,1,1024,16,12,1024,2,1,1,50257,0.2\n");
  const auto complaint = [&](const std::string& profile, const std::string& number) {
    const Outcome outcome =
        workspace.run({"calibrate", "--fit", profile, "--reference", "rows.csv", "--free", number});
    CHECK(outcome.status == 2);
    return outcome.err;
  };
  CHECK_THAT(complaint("fsdp-2023", "memory_eficiency"),
             Contains("did you mean 'memory_efficiency'"));
  CHECK_THAT(complaint("fsdp-2023", "memory_efficiency"), Contains("less than two models"));
}
