#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "cli/study/spec.h"
#include "run_program.h"

using namespace offstage::cli;
using Catch::Contains;
using nlohmann::json;
using offstage::tests::Workspace;

namespace {

const std::string kBase = R"(base:
  platform: dgx-a100-40
  workload: {model: gpt2, global_batch: 8}
  strategy: auto
)";

StudySpec study_of(const Workspace& workspace, const std::string& text) {
  workspace.write("study.yaml", text);
  return read_study((workspace.folder() / "study.yaml").string());
}

// The values of all rows, a row a line.
std::vector<std::string> rows_of(const StudySpec& study) {
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < study.size(); ++i)
    rows.push_back(json(study.values(study.row(i))).dump());
  return rows;
}

}  // namespace

TEST_CASE("entries make a product, the last one fastest; keys of one entry change together",
          "[cli][unit]") {
  const Workspace workspace;
  const StudySpec study = study_of(workspace, kBase + R"(vary:
  - strategy.micro_batch: [1, 2]
  - {platform: [a, b], workload.sequence_length: [512, 1024]}
)");
  CHECK(study.names() ==
        std::vector<std::string>{"strategy.micro_batch", "platform", "workload.sequence_length"});
  // 2 x 2 rows, not 2 x 2 x 2.
  CHECK(rows_of(study) == std::vector<std::string>{R"([1,"a",512])", R"([1,"b",1024])",
                                                   R"([2,"a",512])", R"([2,"b",1024])"});
  CHECK(study.config(study.row(3)).root().json() ==
        R"({"platform":"b","strategy":{"micro_batch":2},)"
        R"("workload":{"global_batch":8,"model":"gpt2","sequence_length":1024}})");
  // The order of the knobs of `auto` and of the map that takes its place does not matter.
  CHECK(study.base.root().at("strategy").text() == "auto");
}

TEST_CASE("ranges add steps or multiply", "[cli][unit]") {
  const Workspace workspace;
  const auto values = [&](const std::string& range) {
    std::string all;
    for (const auto& row :
         rows_of(study_of(workspace, kBase + "vary:\n  - workload.x: " + range))) {
      all += row;
    }
    return all;
  };
  CHECK(values("{from: 8, to: 128, times: 2}") == "[8][16][32][64][128]");
  CHECK(values("{from: 8, to: 100, times: 2}") == "[8][16][32][64]");
  CHECK(values("{from: 1, to: 7, step: 3}") == "[1][4][7]");
  CHECK(values("{from: 3, to: 1, step: -1}") == "[3][2][1]");
  CHECK(values("{from: 100, to: 1, times: 0.1}") == "[100][10][1]");
  // 3 x 0.1 is 0.30000000000000004 in binary; written as people write it.
  CHECK(values("{from: 0, to: 0.3, step: 0.1}") == "[0][0.1][0.2][0.3]");
  CHECK(values("{from: 5, to: 5, step: 1}") == "[5]");
}

TEST_CASE("named values are shown by name; a case sets several keys", "[cli][unit]") {
  const Workspace workspace;
  const StudySpec study = study_of(workspace, kBase + R"(vary:
  - strategy: {ours: auto, theirs: {system: zero3_offload}}
  - case of size:
      as it is:
      half: {platform.gpus: 4, workload.global_batch: 4}
)");
  CHECK(rows_of(study) == std::vector<std::string>{R"(["ours","as it is"])", R"(["ours","half"])",
                                                   R"(["theirs","as it is"])",
                                                   R"(["theirs","half"])"});
  CHECK(study.config(study.row(3)).root().json() ==
        R"({"platform":{"gpus":4,"name":"dgx-a100-40"},"strategy":{"system":"zero3_offload"},)"
        R"("workload":{"global_batch":4,"model":"gpt2"}})");
  CHECK(study.config(study.row(0)).root().json() == study.base.root().json());
}

TEST_CASE("null leaves a key out", "[cli][unit]") {
  const Workspace workspace;
  const StudySpec study =
      study_of(workspace, kBase + "vary:\n  - strategy.micro_batch: [null, 1]\n");
  CHECK(rows_of(study) == std::vector<std::string>{"[null]", "[1]"});
  CHECK_FALSE(study.config(study.row(0)).root().at("strategy").find("micro_batch"));
}

TEST_CASE("repetitions are innermost, each with a seed of its own", "[cli][unit]") {
  const Workspace workspace;
  const StudySpec study = study_of(workspace, kBase + R"(  disturbances: {jitter: 0.1}
vary:
  - strategy.micro_batch: [1, 2]
repetitions: 3
seed: 7
)");
  REQUIRE(study.size() == 6);
  const StudyRow row = study.row(4);
  CHECK(row.choices == std::vector<std::size_t>{1});
  CHECK(row.repetition == 1);
  CHECK(row.seed == 8);
  CHECK(study.config(row).root().at("disturbances").json() == R"({"jitter":0.1,"seed":8})");
}

TEST_CASE("paths start at the folder of the file they are written in", "[cli][unit]") {
  const Workspace workspace;
  std::filesystem::create_directory(workspace.folder() / "configs");
  workspace.write("configs/run.yaml", "platform: {name: here.yaml}\nprofile: x\n");
  const StudySpec study =
      study_of(workspace, "base: configs/run.yaml\nvary:\n  - profile: [mine.yaml]\n");
  const auto root = study.config(study.row(0)).root();
  CHECK_THAT(root.at("platform").at("name").where().file, Catch::EndsWith("configs/run.yaml"));
  CHECK_THAT(root.at("profile").where().file, Catch::EndsWith("study.yaml"));
}

TEST_CASE("a study with one fault is refused with its place", "[cli][unit]") {
  const Workspace workspace;
  workspace.write("plan.json", R"({"offstage_plan": 1})");
  struct Fault {
    std::string text, place, message;
  };
  const std::string vary = kBase + "vary:\n  - ";
  const std::vector<Fault> faults{
      {kBase + "vary: []\n", ":5:", "the list is empty"},
      {kBase + "vari: []\n", ":5:", "did you mean 'vary'?"},
      {vary + "{}\n", ":6:", "the entry is empty"},
      {vary + "strategy.micro_batch: []\n", ":6:", "there are no values"},
      {vary + "strategy.micro_batch: {}\n", ":6:", "there are no values"},
      {vary + "strategy.micro_batch: 4\n", ":6:", "expected a list of values"},
      {vary + "strategy.micro_batch: [1, 2, 1]\n", ":6:", "the value 1 is written twice"},
      {vary + "{platform: [a, b], profile: [c]}\n", ":6:", "1 values beside 2 of platform"},
      {vary + "x: [1]\n  - x: [2]\n", ":7:", "x is varied twice (first on line 6)"},
      {vary + "x: [1]\n    x: [2]\n", ":7:", "the key 'x' is written twice"},
      {vary + "strategy.x: [1]\n  - strategy: {a: auto}\n", ":7:", "would overwrite strategy.x"},
      {vary + "case: {a: {x: 1}}\n  - x: [1]\n", ":7:", "x is varied twice"},
      {vary + "case: {a: {x: 1}}\n  - case: {b: {y: 1}}\n", ":7:", "`case` is there twice"},
      {vary + "case: [1]\n", ":6:", "the names of cases"},
      {vary + "x: {from: 1, to: 8, step: 0}\n", ":6:", "never reaches 8"},
      {vary + "x: {from: 1, to: 8, step: -1}\n", ":6:", "never reaches 8"},
      {vary + "x: {from: 8, to: 1, step: 1}\n", ":6:", "never reaches 1"},
      {vary + "x: {from: 1, to: 8, times: 1}\n", ":6:", "never reaches 8"},
      {vary + "x: {from: 0, to: 8, times: 2}\n", ":6:", "never reaches 8"},
      {vary + "x: {from: 1, to: 8, times: 2, step: 2}\n", ":6:", "one of step"},
      {vary + "x: {from: 1, to: 8}\n", ":6:", "one of step"},
      {vary + "x: {from: 1, to: 8, tims: 2}\n", ":6:", "did you mean 'times'?"},
      {vary + "x: {from: 1, to: 1e9, step: 1}\n", ":6:", "more than 10000 values"},
      {vary + "x: [1]\nrepetitions: 0\n", ":7:", "from 1 to"},
      {vary + "x: [1]\nrepetitions: 2\n", ":7:", "every repetition would be the same"},
      {vary + "disturbances.seed: [1]\nseed: 2\n", ":6:", "the study's own seed"},
      {vary + "x: [1]\nsearch: quik\n", ":7:", "did you mean 'quick'?"},
      {vary + "x: [1]\nsimulate: {step: 2}\n", ":7:", "did you mean 'steps'?"},
      {"base: none.yaml\nvary:\n  - x: [1]\n", ":1:", "no such file"},
      {"base: plan.json\nvary:\n  - x: [1]\n", ":1:", "this is a plan"},
  };
  for (const Fault& fault : faults) {
    CAPTURE(fault.text);
    CHECK_THROWS_WITH(study_of(workspace, fault.text),
                      Contains("study.yaml" + fault.place) && Contains(fault.message));
  }
  const std::string thousand = "{from: 1, to: 1001, step: 1}";
  CHECK_THROWS_WITH(study_of(workspace, vary + "x: " + thousand + "\n  - y: " + thousand + "\n"),
                    Contains("more than 1000000 rows"));
}
