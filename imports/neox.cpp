#include "imports/neox.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "imports/deepspeed.h"
#include "imports/deepspeed_keys.h"
#include "imports/neox_keys.h"

namespace offstage::imports {
namespace {

using Kind = Finding::Kind;
using scheduler::systems::Place;
using scheduler::systems::Recompute;
using scheduler::systems::System;

constexpr std::int64_t kLargest = 1'000'000'000;

// tensor x pipeline x data = GPUs. Returns whether there is a pipeline, be it of one stage.
bool read_parallelism(Settings& settings, const ImportQuestion& question, Imported& draft) {
  auto& strategy = draft.strategy;
  decide_gpus(settings, settings.whole("num_gpus", 1, 1'000'000), question, draft);
  const auto nodes = settings.whole("num_nodes", -1, 1'000'000);
  settings.report(
      nodes.value.value_or(1) > 1 ? Kind::impossible : Kind::ignored, nodes.at,
      nodes.value.value_or(1) > 1 ? "published systems are planned on one machine" : "one machine");
  const auto tensor = settings.whole("model_parallel_size", 1, 1'000'000);
  const auto pipeline = settings.whole("pipe_parallel_size", 0, 1'000'000);
  strategy.tensor = tensor.value.value_or(1);
  strategy.pipeline = std::max<std::int64_t>(1, pipeline.value.value_or(0));
  const std::int64_t copy = strategy.tensor * strategy.pipeline;
  settings.report(Kind::used, tensor.at,
                  fmt::format("every block is cut over {} GPUs", strategy.tensor));
  if (draft.gpus % copy != 0) {
    settings.report(Kind::contradictory, pipeline.at ? pipeline.at : tensor.at,
                    fmt::format("{} GPUs are not a multiple of model parallel {} x stages {} = {}; "
                                "choose another platform, or ask with --gpus {}",
                                draft.gpus, strategy.tensor, strategy.pipeline, copy, copy));
    strategy.tensor = strategy.pipeline = 1;
  } else {
    settings.report(Kind::used, pipeline.at, fmt::format("{} stages", strategy.pipeline));
  }
  strategy.data = draft.gpus / (strategy.tensor * strategy.pipeline);
  // A model with pipe_parallel_size 1 is a PipelineModule, too, and that is what DeepSpeed looks at
  // (engine.py, _configure_zero_optimizer).
  return pipeline.value.value_or(0) > 0;
}

// Megatron's step, when a block or the model is cut.
void choose_system(Settings& settings, Imported& draft) {
  auto& strategy = draft.strategy;
  if (strategy.tensor * strategy.pipeline == 1) return;
  if (strategy.sharding > 1 || strategy.optimizer != Place::gpu) {
    settings.report_missing(
        Kind::contradictory, "zero_optimization",
        fmt::format("stage {} and offloading do not go together with model or pipeline parallelism "
                    "here (DeepSpeed refuses them under a pipeline); write stage 0 or 1",
                    strategy.sharding));
  }
  strategy.system = System::megatron;
  strategy.sharding = std::min(strategy.sharding, 1);
  strategy.optimizer = strategy.parameters = Place::gpu;
}

void compare(Settings& settings, std::string_view key, std::int64_t of_model,
             const std::string& name) {
  const auto written = settings.whole(key, 1, kLargest);
  if (!written.value) return;
  if (*written.value == of_model) {
    settings.report(Kind::used, written.at, fmt::format("as {} has it", name));
  } else {
    settings.report(Kind::contradictory, written.at,
                    fmt::format("{} has {}; name the file's model with --model", name, of_model));
  }
}

void compare_model(Settings& settings, const workloads::Model& model) {
  compare(settings, "num_layers", model.layers, model.name);
  compare(settings, "hidden_size", model.hidden, model.name);
  compare(settings, "num_attention_heads", model.heads, model.name);
  const auto untied = settings.flag("no_weight_tying");
  if (!untied.value) return;
  const bool same = *untied.value == !model.tied_embeddings;
  settings.report(same ? Kind::used : Kind::contradictory, untied.at,
                  same ? fmt::format("as {} has it", model.name)
                       : fmt::format("{} {} its embedding and head; name the file's model with "
                                     "--model",
                                     model.name, model.tied_embeddings ? "ties" : "does not tie"));
}

void read_checkpointing(Settings& settings, const ImportQuestion& question, Imported& draft) {
  auto& strategy = draft.strategy;
  const auto checkpoint = settings.flag("checkpoint_activations");
  Trainer trainer;
  trainer.recompute = checkpoint.value.value_or(false);  // NeoXArgsTraining: False
  decide_recompute(settings, "checkpoint_activations", trainer, question, draft);
  settings.report(
      Kind::used, checkpoint.at,
      *trainer.recompute ? "blocks are recomputed in backward" : "activations are kept");
  if (!checkpoint.at) {
    settings.report_missing(Kind::left_open, "checkpoint_activations",
                            "not in the file: GPT-NeoX's default false, activations are kept");
  }
  const auto cpu = settings.flag("checkpoint_in_cpu");
  if (cpu.value.value_or(false) && strategy.recompute == Recompute::full) {
    strategy.activations = Place::cpu;
    settings.report(Kind::used, cpu.at, "the inputs of blocks wait in CPU memory");
  } else {
    settings.report(Kind::ignored, cpu.at, "the inputs of blocks stay on the GPU");
  }
  const auto sequence = settings.flag("sequence_parallel");
  strategy.sequence_parallel = sequence.value.value_or(false) && strategy.tensor > 1;
  settings.report(Kind::used, sequence.at,
                  strategy.sequence_parallel ? "tensor ranks share norms and dropouts, too"
                                             : "off: it needs model_parallel_size above 1");
}

// `precision`, and the older `fp16: {type: bfloat16}`.
Trainer read_types(Settings& settings) {
  Trainer trainer;
  const auto precision = settings.word("precision", {"fp16", "fp32", "bfloat16"});
  if (precision.value) {
    trainer.half = *precision.value == "fp32"   ? Half::none
                   : *precision.value == "fp16" ? Half::fp16
                                                : Half::bf16;
    settings.report(Kind::used, precision.at, "the precision of training");
  }
  const auto type = settings.word("fp16.type", {"fp16", "bfloat16"});
  settings.report(Kind::deprecated, type.at, "write precision; 16 bits either way");
  return trainer;
}

void read_neox_clipping(Settings& settings, Imported& draft) {
  const auto old = settings.number("clip_grad", 0.0, 1e30);
  settings.report(Kind::ignored, old.at, "GPT-NeoX reads gradient_clipping");
  if (!settings.has("gradient_clipping")) {
    draft.clips_gradients = true;
    settings.report_missing(Kind::left_open, "gradient_clipping",
                            "not in the file: GPT-NeoX's default 1");
  }
  read_clipping(settings, "gradient_clipping", {}, draft);
}

}  // namespace

Imported import_neox(const platform::Node& root, const ImportQuestion& question) {
  const KnownKeys known({neox_keys(), deepspeed_keys()});
  Settings settings(root, true);
  settings.check_spelling(known, neox_unknown_keys());
  Imported draft;
  draft.format = Format::neox;
  const bool pipelined = read_parallelism(settings, question, draft);
  read_zero(settings, pipelined, question, draft);
  choose_system(settings, draft);
  read_batch(settings,
             {"train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps"},
             {}, question, draft);
  const Trainer types = read_types(settings);
  read_precision(settings, types, draft);
  if (types.half) {
    draft.precision =
        *types.half == Half::none ? platform::Precision::f32 : platform::Precision::bf16;
  }
  read_neox_clipping(settings, draft);
  read_optimizer(settings, draft);
  read_checkpointing(settings, question, draft);
  compare_model(settings, question.model);
  decide_sequence_length(settings, settings.whole("seq_length", 1, kLargest), question, draft);
  settings.finish(known);
  draft.findings = settings.findings();
  return draft;
}

}  // namespace offstage::imports
