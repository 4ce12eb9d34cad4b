#include "workloads/workload.h"

#include <string>

#include <catch2/catch.hpp>

#include "platform/document.h"
#include "platform/error.h"

namespace offstage::workloads {
namespace {

Workload read(const std::string& yaml) {
  return read_workload(platform::Document::parse("run.yaml", yaml, false).root(),
                       "../workloads/models");
}

const std::string kRest =
    "sequence_length: 128\nglobal_batch: 8\nprecision: f32\noptimizer: adamw\n";

TEST_CASE("a workload is read with its tokens of one step", "[workloads][unit]") {
  const Workload workload = read("model: gpt2\n" + kRest);
  CHECK(workload.model.hidden == 768);
  CHECK(workload.precision == platform::Precision::f32);
  CHECK(workload.tokens_per_step() == 1024);
}

TEST_CASE("a workload that can't be is refused where it is written", "[workloads][unit]") {
  CHECK_THROWS_WITH(read("model: gpt2\nbatch: 8\n" + kRest),
                    Catch::Contains("run.yaml:2:1") && Catch::Contains("global_batch"));
  CHECK_THROWS_WITH(read("model: gpt2\nsequence_length: 2048\nglobal_batch: 8\nprecision: bf16\n"
                         "optimizer: adamw\n"),
                    Catch::Contains("run.yaml:2:18") && Catch::Contains("at most 1024"));
  CHECK_THROWS_WITH(read("model: gpt2\nsequence_length: 8\nglobal_batch: 0\nprecision: bf16\n"
                         "optimizer: adamw\n"),
                    Catch::Contains("run.yaml:3:15"));
  CHECK_THROWS_WITH(read("model: gpt2\nsequence_length: 8\nglobal_batch: 8\nprecision: fp16\n"
                         "optimizer: adamw\n"),
                    Catch::Contains("bf16, f32"));
  CHECK_THROWS_WITH(read("sequence_length: 8\n"), Catch::Contains("model"));
}

TEST_CASE("an encoder model is refused as a workload with the reason", "[workloads][unit]") {
  const std::string bert = "model: workloads/data/hf_configs/bert-large-uncased.json\n";
  CHECK_THROWS_WITH(read(bert + kRest), Catch::Contains("run.yaml:1:8") &&
                                            Catch::Contains("encoder model") &&
                                            Catch::Contains("decoder-only"));
}

}  // namespace
}  // namespace offstage::workloads
