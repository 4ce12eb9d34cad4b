#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "import_case.h"
#include "imports/settings.h"
#include "platform/document.h"
#include "platform/error.h"
#include "workloads/model_library.h"

// Files that users posted, as they stand: what each becomes, and every finding but `used` and
// `ignored`, which the last test counts.
using namespace offstage;
using namespace offstage::tests;
using imports::Finding;
using imports::Imported;
using Kind = imports::Finding::Kind;
using Lines = std::vector<std::string>;

namespace {

const std::string kSamples = "imports/samples/";

// What no DeepSpeed file decides.
const Lines kOpenInDeepspeed{"left_open optimizer.type", "left_open gradient_checkpointing",
                             "left_open sequence_length"};

Lines with(Lines lines, const Lines& more) {
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

Imported import_sample(const std::string& name, std::int64_t gpus = 8) {
  return import_config(kSamples + name, llama_on(gpus));
}

Lines notable(const Imported& imported) {
  return listed(imported, {Kind::left_open, Kind::deprecated, Kind::misspelt, Kind::contradictory,
                           Kind::impossible});
}

// system, sharding, parameters / optimizer / activations, micro-batch, batch.
std::string summary(const Imported& imported) {
  const auto& strategy = imported.strategy;
  return fmt::format("{} {} {}/{}/{} {} {}", to_string(strategy.system), strategy.sharding,
                     to_string(strategy.parameters), to_string(strategy.optimizer),
                     to_string(strategy.activations), strategy.micro_batch, imported.global_batch);
}

const Lines kAutomaticBatch{"left_open train_batch_size",
                            "left_open train_micro_batch_size_per_gpu",
                            "left_open gradient_accumulation_steps"};
const Lines kAutomaticSizes{"left_open zero_optimization.reduce_bucket_size",
                            "left_open zero_optimization.stage3_prefetch_bucket_size",
                            "left_open zero_optimization.stage3_param_persistence_threshold"};

}  // namespace

TEST_CASE("JSON with comments, commas and True is refused with all places", "[imports][unit]") {
  try {
    import_sample("ds_bad_trailing_comma.json");
    FAIL("it was read");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_input);
    CHECK(error.where()->line == 2);
    CHECK(error.where()->column == 3);
    const std::string message = error.what();
    for (const char* part : {"a comment; JSON has none: remove it", ":4:90: Python's True; write",
                             ":4:95: a comma in front of '}'; remove it", ":4:97: a comma"}) {
      CHECK_THAT(message, Catch::Contains(part));
    }
  }
}

TEST_CASE("the old switch cpu_offload is read, and 10 sequences are refused on 8 GPUs",
          "[imports][unit]") {
  const Imported on8 = import_sample("ds_legacy_cpu_offload.json");
  CHECK(faults(on8) == Lines{"contradictory train_batch_size"});
  CHECK_THAT(text_about(on8, "train_batch_size"), Catch::Contains("1 x 1 x 8 = 8"));
  // On 2 GPUs 10 / 2 = 5 sequences each, at once.
  const Imported on2 = import_sample("ds_legacy_cpu_offload.json", 2);
  CHECK(summary(on2) == "zero_offload 2 gpu/cpu/gpu 5 10");
  CHECK(on2.clips_gradients);
  CHECK_FALSE(on2.strategy.pinned_memory);
  CHECK(on2.strategy.bucket_elements == 50'000'000);
  CHECK(notable(on2) ==
        with({"deprecated zero_optimization.cpu_offload",
              "left_open zero_optimization.offload_optimizer.pin_memory",
              "left_open train_micro_batch_size_per_gpu", "left_open gradient_accumulation_steps"},
             kOpenInDeepspeed));
}

TEST_CASE("every fault of the misspelt and contradictory file is named", "[imports][unit]") {
  const Imported imported = import_sample("ds_misspelled_and_conflicting.json");
  CHECK(imported.refused());
  CHECK(faults(imported) == Lines{"contradictory train_batch_size", "contradictory fp16.enabled",
                                  "misspelt zero_optimization.offload_optimiser"});
  CHECK_THAT(text_about(imported, "train_batch_size"), Catch::Contains("4 x 1 x 8 = 32"));
  CHECK_THAT(text_about(imported, "zero_optimization.offload_optimiser"),
             Catch::Contains("write 'offload_optimizer'"));
  CHECK_THAT(text_about(imported, "zero_optimization.offload_param.device"),
             Catch::Contains("only stage 3 offloads parameters"));
  CHECK_THAT(text_about(imported, "zero_optimization.sub_group_size"), Catch::Contains("quotes"));
  // hidden_size^2 = 4096 x 4096
  CHECK_THAT(text_about(imported, "zero_optimization.reduce_bucket_size"),
             Catch::Contains("16777216"));
  CHECK(summary(imported) == "zero_offload 2 gpu/cpu/gpu 4 32");
}

TEST_CASE("the NVMe tutorial's file keeps everything on drives", "[imports][unit]") {
  const Imported imported = import_sample("ds_nvme_tutorial.json");
  CHECK(summary(imported) == "zero3_offload 3 nvme/nvme/cpu 1 8");
  CHECK(to_string(imported.strategy.recompute) == "full");
  // 6.74e9 parameters / 8 ranks = 8.4e8 < 1e9: one group.
  CHECK(imported.strategy.sub_group_elements == 6'738'415'616 / 8);
  CHECK(notable(imported) ==
        Lines{"left_open gradient_accumulation_steps", "left_open sequence_length"});
  auto question = llama_on(8);
  question.has_drives = false;
  CHECK(faults(import_config(kSamples + "ds_nvme_tutorial.json", question)) ==
        Lines{"contradictory zero_optimization.offload_optimizer.device",
              "contradictory zero_optimization.offload_param.device"});
}

TEST_CASE("ZeRO-2 files with auto take the Trainer's defaults", "[imports][unit]") {
  const Imported automatic = import_sample("ds_z2_offload_auto.json");
  CHECK(summary(automatic) == "zero_offload 2 gpu/cpu/gpu 8 64");
  CHECK(automatic.strategy.pinned_memory);
  CHECK_FALSE(automatic.strategy.overlap_communication);
  CHECK(automatic.clips_gradients);
  CHECK(notable(automatic) ==
        with(with(kAutomaticBatch, {"left_open gradient_clipping", "left_open fp16.enabled",
                                    "left_open bf16.enabled"}),
             kOpenInDeepspeed));
  const Imported minimal = import_sample("ds_z2_offload_fastchat_minimal.json");
  CHECK(summary(minimal) == "zero_offload 2 gpu/cpu/gpu 8 64");
  CHECK(minimal.strategy.overlap_communication);
  CHECK_FALSE(minimal.strategy.pinned_memory);
  CHECK_FALSE(minimal.clips_gradients);
}

TEST_CASE("ZeRO-3 files with auto take sizes from the model", "[imports][unit]") {
  const Imported imported = import_sample("ds_z3_offload_auto.json");
  CHECK(summary(imported) == "zero3_offload 3 cpu/cpu/gpu 8 64");
  // hidden 4096: h^2 = 16777216, 0.9 h^2 = 15099494.4, 10 h = 40960.
  CHECK(imported.strategy.bucket_elements == 16'777'216);
  CHECK(imported.strategy.prefetch_elements == 15'099'494);
  CHECK(imported.strategy.persistent_elements == 40'960);
  CHECK(imported.strategy.live_elements == 1'000'000'000);
  CHECK(notable(imported) ==
        with(with(with(kAutomaticBatch, {"left_open gradient_clipping", "left_open fp16.enabled",
                                         "left_open bf16.enabled"}),
                  kAutomaticSizes),
             kOpenInDeepspeed));
  const Imported alpaca = import_sample("ds_z3_offload_alpaca.json");
  CHECK(summary(alpaca) == "zero3_offload 3 cpu/cpu/gpu 8 64");
  CHECK(alpaca.precision == platform::Precision::bf16);
  CHECK(faults(alpaca).empty());
}

TEST_CASE("sub-groups of 0 and of 1e12 elements are one tensor and all of them",
          "[imports][unit]") {
  const Imported none = import_sample("ds_z3_offload_axolotl_subgroup0.json");
  CHECK(summary(none) == "zero3_offload 3 cpu/cpu/gpu 8 64");
  // A matrix of 4096 x 4096 over 8 ranks.
  CHECK(none.strategy.sub_group_elements == 2'097'152);
  // max_live_parameters 0: the module at work, of 4096 x 32000 (the head) at most.
  CHECK(none.strategy.live_elements == 131'072'000);
  CHECK(faults(none).empty());
  const Imported all = import_sample("ds_z3_offload_fastchat_subgroup1e12.json");
  CHECK(all.strategy.sub_group_elements == 6'738'415'616 / 8);
  CHECK(all.strategy.prefetch_elements == 500'000'000);
  CHECK(all.strategy.persistent_elements == 1'000'000);
  CHECK(faults(all).empty());
}

TEST_CASE("accelerate's FSDP 1 and 2 run on the two GPUs they name", "[imports][unit]") {
  const Imported one = import_sample("fsdp1_offload.yaml");
  CHECK(one.gpus == 2);
  CHECK(summary(one) == "fsdp 3 cpu/cpu/gpu 8 16");
  CHECK(notable(one) == Lines{"left_open fsdp_config.fsdp_version",
                              "left_open fsdp_config.fsdp_activation_checkpointing",
                              "left_open micro_batch", "left_open gradient_accumulation_steps",
                              "left_open sequence_length"});
  const Imported two = import_sample("fsdp2.yaml");
  CHECK(summary(two) == "fsdp 3 gpu/gpu/gpu 8 16");
  CHECK(faults(two).empty());
}

TEST_CASE("the flags of a Trainer with FSDP are read as a shell would", "[imports][unit]") {
  const Imported imported = import_sample("hf_fsdp_cli.txt");
  // 4 sequences x 8 accumulated x 8 GPUs
  CHECK(summary(imported) == "fsdp 3 cpu/cpu/gpu 4 256");
  CHECK(imported.sequence_length == 2048);
  CHECK(to_string(imported.strategy.recompute) == "full");
  CHECK(notable(imported) == Lines{"deprecated fsdp",
                                   "deprecated fsdp_transformer_layer_cls_to_wrap",
                                   "left_open fsdp_config.fsdp_version"});
}

TEST_CASE("GPT-NeoX 20B is Megatron's step on 8 GPUs, and wants its own model", "[imports][unit]") {
  const std::string file = kSamples + "neox_20B_mixed_json_yaml.yml";
  CHECK(faults(import_config(file, llama_on(8))) == Lines{"contradictory num_layers",
                                                          "contradictory hidden_size",
                                                          "contradictory num_attention_heads"});
  auto question = llama_on(8);
  question.model = workloads::load_model("gpt-neox-20b", "../workloads/models").model;
  const Imported imported = import_config(file, question);
  CHECK(faults(imported).empty());
  // data 1 x tensor 2 x pipeline 4; 4 sequences x 32 accumulated x 1 data rank
  CHECK(summary(imported) == "megatron 1 gpu/gpu/gpu 4 128");
  CHECK(imported.strategy.tensor == 2);
  CHECK(imported.strategy.pipeline == 4);
  CHECK_FALSE(imported.strategy.overlap_communication);
  CHECK(to_string(imported.strategy.recompute) == "full");
  CHECK(imported.clips_gradients);
}

TEST_CASE("every key of a sample has a finding", "[imports][unit]") {
  for (const char* name :
       {"ds_legacy_cpu_offload.json", "ds_nvme_tutorial.json", "ds_z2_offload_auto.json",
        "ds_z2_offload_fastchat_minimal.json", "ds_z3_offload_alpaca.json",
        "ds_z3_offload_auto.json", "ds_z3_offload_axolotl_subgroup0.json",
        "ds_z3_offload_fastchat_subgroup1e12.json", "fsdp1_offload.yaml", "fsdp2.yaml",
        "neox_20B_mixed_json_yaml.yml"}) {
    const Imported imported = import_sample(name);
    const imports::Settings settings(platform::Document::load(kSamples + name).root(), true);
    for (const auto& value : settings.values()) {
      INFO(name << ": " << value.key);
      CHECK_FALSE(text_about(imported, value.key).empty());
    }
  }
}
