#include "imports/trainer_flags.h"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "imports/accelerate.h"
#include "imports/deepspeed.h"
#include "imports/json_text.h"
#include "imports/nested.h"
#include "imports/shell_words.h"
#include "imports/trainer_keys.h"

namespace offstage::imports {
namespace {

using Kind = Finding::Kind;
using scheduler::systems::System;

const std::string kFsdp = "fsdp_config.fsdp_";

bool is_flag(const ShellWord& word) {
  return !word.quoted && word.text.starts_with("--") && word.text.size() > 2;
}

// --flag value, --flag=value, --flag alone (true). --fsdp takes all words up to the next flag.
void add_flags(Settings& settings, const std::vector<ShellWord>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].text.starts_with("--") || words[i].text.size() == 2) continue;
    const ShellWord& word = words[i];
    const std::size_t equals = word.text.find('=');
    Value value{word.text.substr(2, equals == std::string::npos ? equals : equals - 2), "true",
                false, word.line, word.column};
    std::replace(value.key.begin(), value.key.end(), '-', '_');
    if (equals != std::string::npos) {
      value.text = word.text.substr(equals + 1);
    } else if (i + 1 < words.size() && !is_flag(words[i + 1])) {
      value.text = words[++i].text;
    }
    while (value.key == "fsdp" && i + 1 < words.size() && !is_flag(words[i + 1])) {
      value.text += " " + words[++i].text;
    }
    settings.add(std::move(value));
  }
}

Half read_half(Settings& settings) {
  const auto bf16 = settings.flag("bf16");
  const auto fp16 = settings.flag("fp16");
  const bool is_bf16 = bf16.value.value_or(false), is_fp16 = fp16.value.value_or(false);
  if (is_bf16 && is_fp16) {
    settings.report(Kind::contradictory, fp16.at,
                    "--bf16 and --fp16 exclude each other; leave one out");
  } else {
    settings.report(Kind::used, fp16.at,
                    is_fp16 ? "16 bits: simulated as bf16, of the same size and speed" : "off");
  }
  settings.report(Kind::used, bf16.at,
                  is_bf16 ? "computed in bf16, master weights in fp32" : "off");
  if (!bf16.at && !fp16.at) {
    settings.report_missing(Kind::left_open, "bf16", "neither --bf16 nor --fp16: f32");
  }
  if (is_bf16) return Half::bf16;
  return is_fp16 ? Half::fp16 : Half::none;
}

std::optional<bool> read_recompute(Settings& settings) {
  std::optional<bool> recompute;
  for (const char* key : {"activation_checkpointing", "gradient_checkpointing"}) {
    const auto flag = settings.flag(key);
    if (!flag.value) continue;
    recompute = flag.value;
    settings.report(Kind::used, flag.at,
                    *flag.value ? "blocks are recomputed in backward" : "activations are kept");
  }
  return recompute;
}

void read_optim(Settings& settings) {
  const auto optim = settings.text("optim");
  const bool adamw =
      optim.value && (optim.value->starts_with("adamw_torch") || *optim.value == "adamw_hf" ||
                      *optim.value == "adamw_apex_fused");
  settings.report(adamw ? Kind::used : Kind::ignored, optim.at,
                  adamw
                      ? "AdamW: master weights and two moments in fp32"
                      : "planned as AdamW, with two fp32 moments for each parameter; the state of "
                        "others differs");
  const auto adafactor = settings.flag("adafactor");
  settings.report(Kind::deprecated, adafactor.at,
                  "write --optim adafactor; planned as AdamW, whose state is larger");
}

Setting<std::int64_t> read_length(Settings& settings) {
  Setting<std::int64_t> first;
  for (const char* key :
       {"model_max_length", "max_seq_length", "max_length", "cutoff_len", "block_size"}) {
    const auto length = settings.whole(key, 1, std::int64_t{1} << 24);
    if (!first.value) {
      first = length;
    } else {
      settings.report(Kind::ignored, length.at, fmt::format("--{} is taken", first.at->key));
    }
  }
  return first;
}

void read_gpus(Settings& settings, const ImportQuestion& question, Imported& draft) {
  for (const char* key : {"nnodes", "num_nodes"}) {
    const auto nodes = settings.whole(key, 1, 1'000'000);
    const bool several = nodes.value.value_or(1) > 1;
    settings.report(several ? Kind::impossible : Kind::used, nodes.at,
                    several ? "published systems are planned on one machine" : "one machine");
  }
  Setting<std::int64_t> wanted;
  for (const char* key : {"nproc_per_node", "num_gpus", "num_processes"}) {
    auto processes = settings.whole(key, 1, 1'000'000);
    if (!wanted.value) wanted = std::move(processes);
  }
  decide_gpus(settings, wanted, question, draft);
  draft.strategy.data = draft.gpus;
}

// The words of transformers 4's --fsdp, as the keys of fsdp_config that replace them.
void spread_fsdp_words(Settings& settings, const Value& flag) {
  std::istringstream words(flag.text);
  std::string word;
  const auto add = [&](const std::string& key, const std::string& text) {
    if (settings.has(kFsdp + key)) return;
    settings.add({kFsdp + key, text, false, flag.line, flag.column});
  };
  while (words >> word) {
    std::transform(word.begin(), word.end(), word.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    if (word == "auto_wrap") {
      add("auto_wrap_policy", "TRANSFORMER_BASED_WRAP");
    } else if (word == "offload") {
      add("offload_params", "true");
    } else if (word == "true") {
      add("auto_wrap_policy", "TRANSFORMER_BASED_WRAP");  // transformers 5, _process_fsdp_args
    } else {
      add("sharding_strategy", word);
    }
  }
}

// The Trainer's own spelling of accelerate's keys: without fsdp_, and cpu_offload.
void add_fsdp_file(Settings& settings, const std::string& file) {
  const Settings inner(load_json(file).root());
  for (Value value : inner.values()) {
    std::string key = value.key.starts_with("fsdp_") ? value.key.substr(5) : value.key;
    if (key == "cpu_offload") key = "offload_params";
    value.key = kFsdp + key;
    settings.add(std::move(value));
  }
}

void read_fsdp_flags(Settings& settings, const std::string& file, const Setting<std::string>& fsdp,
                     const Trainer& trainer, const ImportQuestion& question, Imported& draft) {
  const auto config = settings.text("fsdp_config");
  if (config.value) {
    settings.report(Kind::used, config.at, "its keys follow as fsdp_config");
    add_fsdp_file(settings, beside(file, *config.value));
  }
  spread_fsdp_words(settings, *fsdp.at);
  const bool words = *fsdp.value != "true" && *fsdp.value != "True";
  settings.report(words ? Kind::deprecated : Kind::used, fsdp.at,
                  words ? "transformers 5 has --fsdp_config for these words; read as its keys below"
                        : "PyTorch's FSDP");
  for (const char* key : {"fsdp_transformer_layer_cls_to_wrap", "fsdp_min_num_params"}) {
    const auto old = settings.text(key);
    settings.report(Kind::deprecated, old.at,
                    "write it in --fsdp_config; every block is simulated as a unit either way");
  }
  read_fsdp(settings, kFsdp, trainer, question, draft);
}

Trainer read_trainer(Settings& settings, bool deepspeed, Imported& draft) {
  Trainer trainer;
  trainer.half = read_half(settings);
  draft.precision =
      *trainer.half == Half::none ? platform::Precision::f32 : platform::Precision::bf16;
  trainer.recompute = read_recompute(settings);
  read_optim(settings);
  if (!deepspeed) return trainer;
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  const auto micro = settings.whole("per_device_train_batch_size", 1, kMost);
  const auto accumulation = settings.whole("gradient_accumulation_steps", 1, kMost);
  const auto norm = settings.number("max_grad_norm", 0.0, 1e30);
  for (const auto& at : {micro.at, accumulation.at, norm.at}) {
    settings.report(Kind::used, at, "fills in where the DeepSpeed file says auto");
  }
  trainer.micro_batch = micro.value.value_or(kTrainerMicroBatch);
  trainer.accumulation = accumulation.value.value_or(kTrainerAccumulation);
  trainer.clip_norm = norm.value.value_or(kTrainerClipNorm);
  if (!trainer.recompute) trainer.recompute = false;
  return trainer;
}

Imported follow_deepspeed(Settings& settings, const std::string& file,
                          const Setting<std::string>& deepspeed, ImportQuestion question,
                          Imported& draft) {
  const Trainer trainer = read_trainer(settings, true, draft);
  const auto length = read_length(settings);
  decide_sequence_length(settings, length, question, draft);
  settings.report(Kind::used, deepspeed.at, "decides what the flags leave to it");
  question.gpus = draft.gpus;
  question.fixed_gpus.reset();
  question.sequence_length = draft.sequence_length;
  settings.finish(KnownKeys({trainer_keys()}));
  Imported inner =
      import_deepspeed(load_json(beside(file, *deepspeed.value)).root(), trainer, question);
  return joined(settings, *deepspeed.value, std::move(inner), Format::trainer_flags);
}

}  // namespace

Imported import_trainer_flags(const std::string& file, const std::string& text,
                              const ImportQuestion& question) {
  const KnownKeys known({trainer_keys()});
  Settings settings;
  add_flags(settings, split_shell_words(file, text));
  settings.check_spelling(known, trainer_unknown_keys());
  Imported draft;
  draft.format = Format::trainer_flags;
  read_gpus(settings, question, draft);
  const auto fsdp = settings.text("fsdp");
  const auto deepspeed = settings.text("deepspeed");
  if (fsdp.value && deepspeed.value) {
    settings.report(Kind::contradictory, deepspeed.at,
                    "--fsdp and --deepspeed exclude each other; leave one out");
  } else if (deepspeed.value) {
    return follow_deepspeed(settings, file, deepspeed, question, draft);
  }
  const Trainer trainer = read_trainer(settings, false, draft);
  if (fsdp.value) {
    read_fsdp_flags(settings, file, fsdp, trainer, question, draft);
  } else {
    draft.strategy.system = System::ddp;
    settings.report_missing(Kind::left_open, "fsdp",
                            "neither --fsdp nor --deepspeed: every GPU holds everything (DDP)");
    decide_recompute(settings, "gradient_checkpointing", trainer, question, draft);
  }
  read_batch(settings, {"", "per_device_train_batch_size", "gradient_accumulation_steps"}, {},
             question, draft);
  draft.clips_gradients = !settings.has("max_grad_norm");  // the Trainer's default is 1
  read_clipping(settings, "max_grad_norm", {}, draft);
  decide_sequence_length(settings, read_length(settings), question, draft);
  settings.finish(known);
  draft.findings = settings.findings();
  return draft;
}

}  // namespace offstage::imports
