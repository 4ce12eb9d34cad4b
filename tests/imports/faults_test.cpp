#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "import_case.h"
#include "platform/error.h"

// Files with one fault each, made by hand.
using namespace offstage;
using namespace offstage::tests;
using Catch::Contains;
using Lines = std::vector<std::string>;

namespace {

struct Fault {
  std::string text;    // of the file
  std::string fault;   // the one expected
  std::string remedy;  // part of its text
};

void check_faults(const std::string& name, const std::vector<Fault>& cases) {
  for (const Fault& one : cases) {
    INFO(one.text);
    const auto imported = import_text(name, one.text, llama_on(8));
    CHECK(faults(imported) == Lines{one.fault});
    CHECK_THAT(text_about(imported, one.fault.substr(one.fault.find(' ') + 1)),
               Contains(one.remedy));
  }
}

std::string refusal(const std::string& name, const std::string& text) {
  try {
    import_text(name, text, llama_on(8));
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_input);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("faults of DeepSpeed files name key and remedy", "[imports][unit]") {
  check_faults(
      "ds.json",
      {{R"({"train_batch_size": 8, "zero_optimization": {"stage": 4}})",
        "impossible zero_optimization.stage", "a whole number from 0 to 3"},
       {R"({"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_com": true}})",
        "misspelt zero_optimization.overlap_com", "'overlap_comm' (DeepSpeed refuses it)"},
       {R"({"train_batch_size": 8, "zero_optimisation": {"stage": 2}})",
        "misspelt zero_optimisation", "'zero_optimization' (DeepSpeed passes over it in silence)"},
       {R"({"train_batch_size": 8, "zero_optimization": {"stage": 2, "kittens": 1}})",
        "impossible zero_optimization.kittens", "remove it"},
       {R"({"train_batch_size": 8, "zero_optimization":
            {"stage": 0, "offload_optimizer": {"device": "cpu"}}})",
        "contradictory zero_optimization.offload_optimizer.device", "\"stage\" 1, 2 or 3"},
       {R"({"train_batch_size": 8, "zero_optimization":
            {"stage": 2, "offload_optimizer": {"device": "nvme"}}})",
        "contradictory zero_optimization.offload_optimizer.device", "NVMe needs stage 3"},
       {R"({"train_batch_size": 8, "zero_optimization":
            {"stage": 2, "offload_optimizer": {"device": "gpu"}}})",
        "impossible zero_optimization.offload_optimizer.device", "one of none, cpu, nvme"},
       {R"({"train_batch_size": 8, "zero_optimization":
            {"stage": 2, "cpu_offload": true, "offload_optimizer": {"device": "cpu"}}})",
        "contradictory zero_optimization.cpu_offload", "remove this old key"},
       {R"({"train_batch_size": 8, "zero_optimization":
            {"stage": 3, "offload_param": {"device": "cpu"}}})",
        "impossible zero_optimization.offload_param.device", "add offload_optimizer"},
       {R"({"train_batch_size": 8, "zero_optimization":
            {"stage": 1, "offload_optimizer": {"device": "cpu", "ratio": 0.5}}})",
        "contradictory zero_optimization.offload_optimizer.ratio", "at stage 3 only"},
       {R"({"train_batch_size": -8, "train_micro_batch_size_per_gpu": 1})",
        "impossible train_batch_size", "a whole number from 1"},
       {R"({"train_batch_size": 8, "fp16": {"enabled": "maybe"}})", "impossible fp16.enabled",
        "true or false"},
       {R"({"train_batch_size": 8, "zero_optimization": 3})", "impossible zero_optimization",
        "true or false"}});
}

TEST_CASE("faults of accelerate's files name key and remedy", "[imports][unit]") {
  const std::string fsdp = "distributed_type: FSDP\nnum_processes: 8\nfsdp_config:\n";
  check_faults(
      "accelerate.yaml",
      {{"distributed_type: FSDP\nnum_processes: 16\n", "contradictory num_processes",
        "16 GPUs are wanted, the machine has 8"},
       {"distributed_type: FSDP\nnum_machines: 2\nnum_processes: 8\n", "impossible num_machines",
        "one machine"},
       {"distributed_typ: FSDP\nnum_processes: 8\nfsdp_config: {fsdp_version: 1}\n",
        "misspelt distributed_typ", "'distributed_type' (accelerate refuses it)"},
       {fsdp + "  fsdp_sharding_strategy: FULL_SHRD\n",
        "impossible fsdp_config.fsdp_sharding_strategy", "did you mean 'full_shard'?"},
       {fsdp + "  fsdp_ofload_params: true\n", "misspelt fsdp_config.fsdp_ofload_params",
        "passes over it in silence"},
       {fsdp + "  fsdp_cpu_ram_efficient_loading: true\n  fsdp_sync_module_states: false\n",
        "contradictory fsdp_config.fsdp_cpu_ram_efficient_loading", "fsdp_sync_module_states"},
       {fsdp + "  fsdp_version: 3\n", "impossible fsdp_config.fsdp_version", "from 1 to 2"},
       {"distributed_type: MEGATRON_LM\n", "impossible distributed_type", "strategy: {system"},
       {"distributed_type: FSDP\nmixed_precision: fp8\n", "impossible mixed_precision", "bf16"}});
}

TEST_CASE("faults of GPT-NeoX's files name key and remedy", "[imports][unit]") {
  const std::string batch = "\"train_micro_batch_size_per_gpu\": 1, ";
  check_faults(
      "neox.yml",
      {{"{" + batch + "\"pipe_parallel_size\": 3}", "contradictory pipe_parallel_size",
        "8 GPUs are not a multiple of model parallel 1 x stages 3 = 3"},
       {"{" + batch + "\"pipe-parallel-size\": 2, \"zero_optimization\": {\"stage\": 2}}",
        "contradictory zero_optimization", "write stage 0 or 1"},
       {"{" + batch + "\"model_parallel_size\": 1, \"atention_dropout\": 0}",
        "misspelt atention_dropout", "'attention_dropout' (GPT-NeoX refuses it)"},
       {"{" + batch + "\"num_layers\": 24}", "contradictory num_layers", "llama-2-7b has 32"}});
}

TEST_CASE("faults of a Trainer's flags name flag and remedy", "[imports][unit]") {
  check_faults("train.sh",
               {{"torchrun --nproc_per_node 16 train.py --bf16 True",
                 "contradictory nproc_per_node", "16 GPUs are wanted"},
                {"train.py --bf16 --fp16", "contradictory fp16", "leave one out"},
                {"train.py --per_device_train_batch_sise 4", "misspelt per_device_train_batch_sise",
                 "'per_device_train_batch_size'"},
                {"train.py --per_device_train_batch_size four",
                 "impossible per_device_train_batch_size", "a whole number"},
                {"train.py --fsdp \"full_shrd auto_wrap\"",
                 "impossible fsdp_config.fsdp_sharding_strategy", "did you mean 'full_shard'?"}});
}

TEST_CASE("files that are none of the formats are refused with what is taken", "[imports][unit]") {
  CHECK_THAT(refusal("a.yaml", "lr: 1e-4\n"), Contains("no key tells what this is"));
  CHECK_THAT(refusal("config.json", R"({"model_type": "llama"})"), Contains("--model"));
  CHECK_THAT(refusal("run.yaml", "platform: x\nworkload: {}\n"), Contains("without --import"));
  CHECK_THAT(refusal("list.json", "[1, 2]"), Contains("expected a map"));
  CHECK_THAT(refusal("flags.txt", "train.py --fsdp \"full_shard\n--bf16"),
             Contains(":1:17: this quote (\") has no end; close it"));
  CHECK_THAT(refusal("ds.json", "{\"train_batch_size\": 8, 'fp16': {}}"),
             Contains(":1:25: not valid JSON: a single quote"));
  CHECK_THROWS_WITH(imports::import_config("no/such.json", llama_on(8)),
                    Contains("no such file; check the path"));
}
