#include "imports/accelerate.h"

#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "imports/accelerate_keys.h"
#include "imports/deepspeed.h"
#include "imports/json_text.h"
#include "imports/nested.h"

namespace offstage::imports {
namespace {

using Kind = Finding::Kind;
using scheduler::systems::Place;
using scheduler::systems::System;

const std::string kDeepspeed = "deepspeed_config.";

// 'no' in quotes is text; bare no is YAML's false, which accelerate reads as no, too.
void read_mixed_precision(Settings& settings, Imported& draft) {
  const auto old = settings.flag("fp16");
  settings.report(Kind::deprecated, old.at, "write mixed_precision: fp16; read so");
  const auto mixed = settings.word("mixed_precision", {"no", "false", "fp16", "bf16", "fp8"});
  std::string name = mixed.value.value_or("no");
  if (!mixed.value && old.value.value_or(false)) name = "fp16";
  const bool full = name == "no" || name == "false";
  draft.precision = full ? platform::Precision::f32 : platform::Precision::bf16;
  if (name == "fp8") {
    settings.report(Kind::impossible, mixed.at,
                    "fp8 can't be planned; write bf16 for a run that is at most slower");
  } else if (mixed.value) {
    settings.report(Kind::used, mixed.at,
                    full             ? "f32"
                    : name == "fp16" ? "16 bits: simulated as bf16, of the same size and speed"
                                     : "computed in bf16, master weights in fp32");
  } else if (!old.at) {
    settings.report_missing(Kind::left_open, "mixed_precision",
                            "not in the file: f32, accelerate's default");
  }
}

Place read_place(Settings& settings, const std::string& key, std::string_view what) {
  const auto device = settings.word(kDeepspeed + key, {"none", "cpu", "nvme"});
  if (!device.value) return Place::gpu;
  settings.report(Kind::used, device.at,
                  *device.value == "none" ? fmt::format("{} on the GPU", what)
                                          : fmt::format("{} on {}", what, *device.value));
  if (*device.value == "cpu") return Place::cpu;
  return *device.value == "nvme" ? Place::nvme : Place::gpu;
}

// DeepSpeedPlugin writes a DeepSpeed config from these few keys; all else is DeepSpeed's default.
void read_inline_deepspeed(Settings& settings, Imported& draft) {
  auto& strategy = draft.strategy;
  const auto stage = settings.whole(kDeepspeed + "zero_stage", 0, 3);
  const std::int64_t number = stage.value.value_or(2);  // DeepSpeedPlugin.zero_stage
  settings.report(Kind::used, stage.at, "ZeRO's stage");
  if (!stage.at) {
    settings.report_missing(Kind::left_open, kDeepspeed + "zero_stage",
                            "not in the file: accelerate's default 2");
  }
  strategy.optimizer = read_place(settings, "offload_optimizer_device", "optimizer state");
  strategy.parameters = read_place(settings, "offload_param_device", "parameters");
  strategy.pinned_memory = strategy.optimizer == Place::gpu;  // DeepSpeed's default: pageable
  if (strategy.parameters != Place::gpu && number < 3) {
    settings.report_missing(
        Kind::ignored, kDeepspeed + "offload_param_device",
        fmt::format("only stage 3 offloads parameters, this is stage {}", number));
    strategy.parameters = Place::gpu;
  }
  if ((strategy.optimizer != Place::gpu && number == 0) ||
      (strategy.optimizer == Place::nvme && number < 3) ||
      (strategy.parameters != Place::gpu && strategy.optimizer == Place::gpu)) {
    settings.report(Kind::contradictory, stage.at,
                    "stage 0 offloads nothing, NVMe needs stage 3, and parameters off the GPU are "
                    "planned with the optimizer off it, too");
    strategy.optimizer = strategy.parameters = Place::gpu;
  }
  strategy.overlap_communication = number == 3;  // DeepSpeedZeroConfig.overlap_comm_valid
  choose_zero_system(number, strategy);
}

void read_plain(Settings& settings, const Setting<std::string>& type, Imported& draft) {
  draft.strategy.system = System::ddp;
  settings.report(Kind::used, type.at, "every GPU holds everything (DDP)");
}

struct Launch {
  Setting<std::string> type;
  Setting<std::string> deepspeed_file;
};

Launch read_launch(Settings& settings, const ImportQuestion& question, Imported& draft) {
  const auto machines = settings.whole("num_machines", 1, 1'000'000);
  if (machines.value.value_or(1) > 1) {
    settings.report(Kind::impossible, machines.at,
                    "published systems are planned on one machine; write 1, and num_processes for "
                    "one machine");
  } else {
    settings.report(Kind::used, machines.at, "one machine");
  }
  const auto cpu = settings.flag("use_cpu");
  settings.report(cpu.value.value_or(false) ? Kind::impossible : Kind::ignored, cpu.at,
                  cpu.value.value_or(false) ? "training on CPUs alone can't be planned; write false"
                                            : "GPUs are used, as always here");
  decide_gpus(settings, settings.whole("num_processes", 1, 1'000'000), question, draft);
  draft.strategy.data = draft.gpus;
  Launch launch;
  launch.type =
      settings.word("distributed_type", {"NO", "MULTI_GPU", "FSDP", "DEEPSPEED", "MEGATRON_LM",
                                         "MULTI_CPU", "TP", "XLA", "MULTI_XPU", "MULTI_NPU"});
  launch.deepspeed_file = settings.text(kDeepspeed + "deepspeed_config_file");
  return launch;
}

// The DeepSpeed file decides alone; accelerate refuses other keys beside it
// (DeepSpeedPlugin._deepspeed_config_checks).
Imported follow_deepspeed_file(Settings& settings, const platform::Node& root,
                               const Setting<std::string>& file, const ImportQuestion& question,
                               const Imported& draft) {
  for (const char* key : {"zero_stage", "offload_optimizer_device", "offload_param_device",
                          "gradient_accumulation_steps", "gradient_clipping"}) {
    const auto other = settings.text(kDeepspeed + key);
    settings.report(Kind::contradictory, other.at,
                    "accelerate refuses it beside deepspeed_config_file; write it there");
  }
  const std::string path = beside(root.where().file, *file.value);
  settings.report(Kind::used, file.at, "decides everything but the number of GPUs");
  Trainer trainer;
  const auto mixed = settings.word("mixed_precision", {"no", "false", "fp16", "bf16", "fp8"});
  if (mixed.value && *mixed.value == "bf16") trainer.half = Half::bf16;
  if (mixed.value && *mixed.value == "fp16") trainer.half = Half::fp16;
  settings.report(Kind::used, mixed.at, "fills in where the DeepSpeed file says auto");
  ImportQuestion inner = question;
  inner.gpus = draft.gpus;
  return import_deepspeed(load_json(path).root(), trainer, inner);
}

void read_method(Settings& settings, const Launch& launch, const ImportQuestion& question,
                 Imported& draft) {
  const std::string name =
      launch.type.value.value_or(settings.has_below("fsdp_config") ? "FSDP" : "NO");
  if (name == "FSDP") {
    settings.report(Kind::used, launch.type.at, "PyTorch's FSDP");
    read_fsdp(settings, "fsdp_config.fsdp_", {}, question, draft);
  } else if (name == "DEEPSPEED") {
    settings.report(Kind::used, launch.type.at, "DeepSpeed");
    read_inline_deepspeed(settings, draft);
    decide_recompute(settings, "gradient_checkpointing", {}, question, draft);
  } else if (name == "MULTI_GPU" || name == "NO") {
    read_plain(settings, launch.type, draft);
    decide_recompute(settings, "gradient_checkpointing", {}, question, draft);
  } else {
    settings.report(Kind::impossible, launch.type.at,
                    "can't be imported from accelerate's file; write strategy: {system: ...} in a "
                    "run config");
  }
}

}  // namespace

Imported import_accelerate(const platform::Node& root, const ImportQuestion& question) {
  const KnownKeys known({accelerate_keys()});
  Settings settings(root);
  settings.check_spelling(known, accelerate_unknown_keys());
  Imported draft;
  const Launch launch = read_launch(settings, question, draft);
  if (launch.deepspeed_file.value) {
    settings.report(Kind::used, launch.type.at, "DeepSpeed");
    Imported inner = follow_deepspeed_file(settings, root, launch.deepspeed_file, question, draft);
    settings.finish(known);
    return joined(settings, *launch.deepspeed_file.value, std::move(inner), Format::accelerate);
  }
  read_method(settings, launch, question, draft);
  draft.format = Format::accelerate;
  read_mixed_precision(settings, draft);
  const std::string inside = kDeepspeed + "gradient_accumulation_steps";
  read_batch(settings,
             {"", "",
              settings.has(inside) ? std::string_view(inside)
                                   : std::string_view("gradient_accumulation_steps")},
             {}, question, draft);
  read_clipping(settings, kDeepspeed + "gradient_clipping", {}, draft);
  decide_sequence_length(settings, {}, question, draft);
  settings.finish(known);
  draft.findings = settings.findings();
  return draft;
}

}  // namespace offstage::imports
