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
const std::string kTwoRows = kHeader +
                             "one,2,4,1,1024,16,12,1024,2,1,1,50257,0.1\n"
                             "two,2,4,1,1024,16,12,1024,1,1,2,50257,0.2\n";

}  // namespace

TEST_CASE("validate --json has the keys that stay stable", "[cli][sim]") {
  const Workspace workspace;
  workspace.write("rows.csv", kTwoRows);
  const Outcome outcome = workspace.run(
      {"validate", "--reference", "rows.csv", "--json", "--out", "out", "--workers", "2"});
  CHECK(outcome.status == 0);
  const json validated = outcome.json();
  REQUIRE(validated["sets"].size() == 1);
  const json& set = validated["sets"][0];
  CHECK(set["name"] == "vtrain");
  CHECK(set["rows"] == 2);
  CHECK(set["answered"] == 2);
  CHECK(set["mape"].get<double>() >= 0.0);
  CHECK(set["median"].get<double>() >= 0.0);
  CHECK(set["p90"].get<double>() >= set["median"].get<double>());
  CHECK(set["worst"]["kinds_s"]["forward"].get<double>() > 0.0);
  CHECK_FALSE(set["worst"]["memory"]["lines"].empty());
  CHECK(set["ranking"]["pairs"] == 1);
  CHECK_THAT(workspace.read("out/rows.csv"),
             Contains("\none,vtrain,12 x 1024,megatron-deepspeed-2023,step_s,0.1,"));
  CHECK_THAT(workspace.read("out/breakdown.csv"), Contains("two,forward,"));
}

TEST_CASE("validate says why a row has no answer", "[cli][sim]") {
  const Workspace workspace;
  workspace.write("rows.yaml",
                  "rows:\n- set: mine\n  id: strange\n  confidence: low\n  machine: {gpu: "
                  "A100-80GB, n_gpus: 8}\n  model: {name: x}\n  system: tomorrow\n  measured: "
                  "{step_s: 1}\n");
  const Outcome outcome = workspace.run({"validate", "--reference", "rows.yaml"});
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, Contains("Not answered:") && Contains("mine, 1 rows"));
}

TEST_CASE("validate names what is wrong with a reference or a set", "[cli][sim]") {
  const Workspace workspace;
  workspace.write("rows.csv", kHeader + "one,2,4,1,1024,16,twelve,1024,2,1,1,50257,0.1\n");
  const Outcome faulty = workspace.run({"validate", "--reference", "rows.csv"});
  CHECK(faulty.status == 2);
  CHECK_THAT(faulty.err, Contains("twelve") && Contains("layers"));
  const Outcome unknown = workspace.run({"validate", "--set", "mosaik"});
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.err, Contains("mosaik") && Contains("mosaic"));
}
