#include "imports/deepspeed.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include <fmt/format.h>

#include "imports/deepspeed_keys.h"

namespace offstage::imports {
namespace {

using Kind = Finding::Kind;
using scheduler::systems::Place;
using scheduler::systems::Recompute;

void read_checkpointing(Settings& settings, const Trainer& trainer, const ImportQuestion& question,
                        Imported& draft) {
  const std::string section = "activation_checkpointing";
  if (!settings.has_below(section)) {
    decide_recompute(settings, "gradient_checkpointing", trainer, question, draft);
    return;
  }
  auto& strategy = draft.strategy;
  strategy.recompute = question.recompute.value_or(Recompute::full);
  settings.report_missing(Kind::used, section,
                          question.recompute
                              ? "--recompute of the command line decides"
                              : "blocks are recomputed, as a model does that calls "
                                "deepspeed.checkpointing; others ignore the section");
  const auto cpu = settings.flag(section + ".cpu_checkpointing");
  if (!cpu.value) return;
  const bool moves = *cpu.value && strategy.recompute == Recompute::full;
  if (moves) strategy.activations = Place::cpu;
  settings.report(
      Kind::used, cpu.at,
      moves ? "the inputs of blocks wait in CPU memory" : "the inputs of blocks stay on the GPU");
}

// Both formats of 16 bits cost the same; what counts is whether one of them is on.
Half decided_half(const Setting<bool>& fp16, const Setting<bool>& bf16, const Trainer& trainer) {
  if (bf16.value.value_or(false)) return Half::bf16;
  if (fp16.value.value_or(false)) return Half::fp16;
  if (trainer.half && (fp16.automatic || bf16.automatic)) return *trainer.half;
  if (bf16.automatic) return Half::bf16;
  return fp16.automatic ? Half::fp16 : Half::none;
}

void report_half(Settings& settings, const Setting<bool>& key, bool on, bool decided,
                 std::string_view note) {
  if (key.automatic) {
    settings.report(Kind::left_open, key.at,
                    fmt::format("{}: {}", on ? "on" : "off",
                                decided ? "as the file or the Trainer says elsewhere"
                                        : "assumed, as the Trainer's --bf16 or --fp16 decides"));
  } else if (key.value) {
    settings.report(Kind::used, key.at, *key.value ? std::string(note) : "off");
  }
}

// Keys that ask for other states than fp32's.
void read_state_precision(Settings& settings) {
  for (const char* key : {"fp16.fp16_master_weights_and_grads",
                          "bf16.bf16_master_weights_and_grads", "bf16.bf16_optimizer_states"}) {
    const auto state = settings.flag(key);
    if (!state.at) continue;
    settings.report(Kind::ignored, state.at,
                    state.value.value_or(false)
                        ? "states are planned in fp32; in 16 bits they take less memory"
                        : "states are planned in fp32, as asked");
  }
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

}  // namespace

void read_precision(Settings& settings, const Trainer& trainer, Imported& draft) {
  const auto fp16 = settings.flag("fp16.enabled");
  auto bf16 = settings.flag("bf16.enabled");
  const auto old = settings.flag("bfloat16.enabled");
  if (old.at) settings.report(Kind::deprecated, old.at, "write bf16: {\"enabled\": ...}");
  if (bf16.absent()) bf16 = {{}, old.value, old.automatic};
  read_state_precision(settings);
  const bool both = fp16.value.value_or(false) && bf16.value.value_or(false);
  if (both) {
    settings.report(Kind::contradictory, fp16.at,
                    fmt::format("fp16 and bf16 (line {}) are both on; DeepSpeed refuses that: "
                                "turn one off",
                                bf16.at ? bf16.at->line : old.at->line));
  }
  const Half half = decided_half(fp16, bf16, trainer);
  const bool settled =
      fp16.value.value_or(false) || bf16.value.value_or(false) || trainer.half.has_value();
  if (!both) {
    report_half(settings, fp16, half == Half::fp16, settled,
                "16 bits: simulated as bf16, of the same size and speed");
  }
  report_half(settings, bf16, half == Half::bf16, settled, "weights, activations in 16 bits");
  draft.precision = half == Half::none ? platform::Precision::f32 : platform::Precision::bf16;
  if (half == Half::none && fp16.absent() && bf16.absent()) {
    settings.report_missing(Kind::left_open, "bf16.enabled",
                            "neither bf16 nor fp16 in the file: DeepSpeed trains in f32");
  }
}

void read_optimizer(Settings& settings, Imported& draft) {
  const auto type = settings.text("optimizer.type");
  constexpr std::array<std::string_view, 2> kAdam{"adam", "adamw"};
  if (type.value) {
    const std::string name = lower(*type.value);
    const bool adam = std::find(kAdam.begin(), kAdam.end(), name) != kAdam.end();
    settings.report(adam ? Kind::used : Kind::ignored, type.at,
                    adam ? "AdamW: master weights and two moments in fp32"
                         : "planned as AdamW, with two fp32 moments for each parameter; the "
                           "state of others differs");
  } else if (type.at) {
    settings.report(Kind::left_open, type.at, "AdamW, the Trainer's default");
  } else {
    settings.report_missing(Kind::left_open, "optimizer.type",
                            "not in the file: planned as AdamW, the Trainer's default");
  }
  const auto forced = settings.flag("zero_force_ds_cpu_optimizer");
  const bool slow = forced.value && !*forced.value && draft.strategy.optimizer != Place::gpu;
  settings.report(Kind::ignored, forced.at,
                  slow ? "the update is simulated with DeepSpeed's CPU Adam; with an optimizer of "
                         "PyTorch, which this key permits, it is slower"
                       : "only permits other optimizers");
}

Imported import_deepspeed(const platform::Node& root, const Trainer& trainer,
                          const ImportQuestion& question) {
  const KnownKeys known({deepspeed_keys()});
  Settings settings(root);
  settings.check_spelling(known, deepspeed_unknown_keys());
  Imported draft;
  draft.format = Format::deepspeed;
  decide_gpus(settings, {}, question, draft);
  draft.strategy.data = draft.gpus;
  read_zero(settings, false, question, draft);
  read_batch(settings,
             {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"},
             trainer, question, draft);
  read_precision(settings, trainer, draft);
  read_clipping(settings, "gradient_clipping", trainer, draft);
  read_optimizer(settings, draft);
  read_checkpointing(settings, trainer, question, draft);
  decide_sequence_length(settings, {}, question, draft);
  settings.finish(known);
  draft.findings = settings.findings();
  return draft;
}

}  // namespace offstage::imports
