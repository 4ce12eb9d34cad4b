#include "calibration/reference_cases.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include <catch2/catch.hpp>

#include "calibration/reference_strategy.h"
#include "calibration/reference_workload.h"
#include "workloads/layer_table.h"

using namespace offstage;
using namespace offstage::calibration;
using scheduler::systems::Place;
using scheduler::systems::System;

namespace {

const std::string kData = "..";

ReferenceMapping mapping() {
  return ReferenceMapping(kData + "/calibration/reference/mapping.yaml");
}

ReferenceCases cases_of(const std::vector<ReferenceRow>& rows) {
  return make_reference_cases(rows, mapping(),
                              {.catalog = kData + "/platform/catalog",
                               .models = kData + "/workloads/models",
                               .profiles = kData + "/calibration/profiles"});
}

std::vector<ReferenceRow> shipped(const char* file) {
  return load_reference(kData + "/calibration/reference/" + file);
}

std::vector<ReferenceRow> set_of(const std::string& set) {
  auto rows = shipped("training.yaml");
  std::erase_if(rows, [&](const ReferenceRow& row) { return row.set != set; });
  return rows;
}

ReferenceRow row_named(const std::string& id) {
  for (const auto& row : shipped("training.yaml")) {
    if (row.id == id) return row;
  }
  FAIL("no row " << id);
  return {};
}

scheduler::systems::SystemStrategy strategy_of(const std::string& id) {
  std::vector<std::string> assumed;
  return reference_strategy(row_named(id), assumed);
}

}  // namespace

TEST_CASE("every row that ships is a case or is refused with a reason", "[calibration][unit]") {
  for (const char* file : {"training.yaml", "vtrain.csv"}) {
    const auto rows = shipped(file);
    const ReferenceCases cases = cases_of(rows);
    CHECK(cases.cases.size() + cases.refused.size() == rows.size());
    for (const RefusedRow& refused : cases.refused) CHECK_FALSE(refused.reason.empty());
    for (const ReferenceCase& question : cases.cases) {
      REQUIRE_FALSE(question.attempts.empty());
      CHECK(question.machine < cases.machines.size());
      CHECK(question.profile < cases.profiles.size());
    }
  }
}

TEST_CASE("models built from published sizes have the published parameters",
          "[calibration][unit]") {
  // The source prints them with four decimals of 1e9.
  const auto rows = set_of("mosaic");
  const ReferenceCases cases = cases_of(rows);
  REQUIRE(cases.cases.size() == rows.size());
  for (const ReferenceCase& question : cases.cases) {
    const ReferenceRow& row = rows[question.row];
    CAPTURE(row.id);
    const double counted =
        static_cast<double>(count_parameters(question.attempts.front().workload.model));
    CHECK(counted == Approx(*row.model.parameters).margin(1e5));
  }
}

TEST_CASE("Megatron pads the vocabulary for its tensor ranks, vTrain's runs did not",
          "[calibration][unit]") {
  // 50257 halves to 25128 each; 128 x 2 ranks: 50257 is between 196 x 256 = 50176 and 197 x 256 =
  // 50432.
  auto rows = shipped("vtrain.csv");
  std::erase_if(rows, [](const ReferenceRow& row) { return row.parallel.tensor != 2; });
  rows.resize(1);
  CHECK(cases_of(rows).cases.at(0).attempts.at(0).workload.model.vocab == 50256);
  rows[0].system = "megatron";
  CHECK(cases_of(rows).cases.at(0).attempts.at(0).workload.model.vocab == 50432);
}

TEST_CASE("DeepSpeed's stage and placement tell which system it was", "[calibration][unit]") {
  CHECK(strategy_of("a800_llama7b_z2_ck0_oo0_po0_zpp0_mb1_gb64").system == System::zero2);
  CHECK(strategy_of("a800_llama7b_z2_ck1_oo1_po0_zpp0_mb1_gb64").system == System::zero_offload);
  CHECK(strategy_of("a800_llama7b_z3_ck1_oo0_po0_zpp0_mb2_gb64").system == System::zero3);
  const auto optimizer_only = strategy_of("a800_llama7b_z3_ck1_oo1_po0_zpp0_mb2_gb64");
  CHECK(optimizer_only.system == System::zero3_offload);
  CHECK(optimizer_only.parameters == Place::gpu);
  CHECK(optimizer_only.optimizer == Place::cpu);
  CHECK(optimizer_only.micro_batch == 2);
}

TEST_CASE("a row whose batch was the best found is asked at several", "[calibration][unit]") {
  // 1, 2, 4, 8, 16, 32 and 64 sequences on each of four GPUs.
  const ReferenceCases cases = cases_of({row_named("pstar_a100_ps_g4_6B")});
  REQUIRE(cases.cases.size() == 1);
  CHECK(cases.cases[0].choice == Choice::fastest);
  REQUIRE(cases.cases[0].attempts.size() == 7);
  CHECK(cases.cases[0].attempts[3].workload.global_batch == 32);
  CHECK(cases.machines[0].gpus.size() == 4);
}

TEST_CASE("the largest model is asked along the set's own ladder", "[calibration][unit]") {
  const auto rows = set_of("pstar");
  const ReferenceCases cases = cases_of(rows);
  const auto largest = std::ranges::find(cases.cases, Choice::largest, &ReferenceCase::choice);
  REQUIRE(largest != cases.cases.end());
  std::int64_t before = 0;
  for (const Attempt& rung : largest->attempts) {
    const std::int64_t size = count_parameters(rung.workload.model);
    CHECK(size > before);
    before = size;
  }
  // 1, 2, 4, 6, 8, 10, 12, 15, 18, 20, 40, 50 and 60 billion.
  CHECK(largest->attempts.size() == 13);
}

TEST_CASE("what no system stands for is refused", "[calibration][unit]") {
  const auto reason_of = [](const std::string& id) {
    const ReferenceCases cases = cases_of({row_named(id)});
    return cases.refused.empty() ? "" : cases.refused[0].reason;
  };
  CHECK(reason_of("mcore_a100_t5_11b_tp4").find("encoder-decoder") != std::string::npos);
  CHECK(reason_of("a800_llama7b_z3_ck1_oo1_po1_zpp1_mb4_gb64").find("ZeRO++") != std::string::npos);
  CHECK(reason_of("nntile_L4_g4_nt_2.1B").find("NNTile") != std::string::npos);
  CHECK(reason_of("lohan_g1_13B_bs8").find("LoHan") != std::string::npos);
  CHECK(reason_of("pstar_v100_max_deepspeed_mp_g8").find("parallel sizes") != std::string::npos);
  CHECK(reason_of("nntile_L4_g4_fsdp_bf16_2.1B").find("sequence length") != std::string::npos);
  CHECK(reason_of("gemini_10b_g4_auto_tp4_bs8").find("tensor ranks") != std::string::npos);
}

TEST_CASE("a question about the CPU's memory needs no sequence length", "[calibration][unit]") {
  const ReferenceCases cases = cases_of({row_named("issue_axolotl1439_70b")});
  REQUIRE(cases.cases.size() == 1);
  const ReferenceCase& question = cases.cases[0];
  // Llama-2-70B's count: 68,976,648,192.
  CHECK(count_parameters(question.attempts[0].workload.model) == 68'976'648'192);
  const auto says = [&](const char* text) {
    return std::ranges::any_of(question.assumed, [&](const std::string& assumption) {
      return assumption.find(text) != std::string::npos;
    });
  };
  CHECK(says("Llama-2-70B"));
  CHECK(says("sequences of 2048 tokens"));
}
