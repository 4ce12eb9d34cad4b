#include "imports/draft.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace offstage::imports {
namespace {

using Kind = Finding::Kind;
using scheduler::systems::Recompute;

// Assumed where nobody says how long sequences are: cutoff_len of LLaMA-Factory, whose configs are
// among the most copied (DataArguments, src/llamafactory/hparams/data_args.py).
constexpr std::int64_t kAssumedSequence = 2048;

}  // namespace

void decide_gpus(Settings& settings, const Setting<std::int64_t>& wanted,
                 const ImportQuestion& question, Imported& draft) {
  draft.gpus = question.fixed_gpus.value_or(wanted.value.value_or(question.gpus));
  if (!wanted.value) return;
  if (question.fixed_gpus && *question.fixed_gpus != *wanted.value) {
    settings.report(Kind::ignored, wanted.at,
                    fmt::format("the command line says --gpus {}", *question.fixed_gpus));
  } else if (*wanted.value > question.gpus && !question.fixed_gpus) {
    settings.report(Kind::contradictory, wanted.at,
                    fmt::format("{} GPUs are wanted, the machine has {}; choose another platform, "
                                "or ask with --gpus",
                                *wanted.value, question.gpus));
    draft.gpus = question.gpus;
  } else {
    settings.report(Kind::used, wanted.at, fmt::format("{} GPUs", draft.gpus));
  }
}

void decide_sequence_length(Settings& settings, const Setting<std::int64_t>& from_file,
                            const ImportQuestion& question, Imported& draft) {
  if (question.sequence_length) {
    draft.sequence_length = *question.sequence_length;
    if (from_file.value && *from_file.value != draft.sequence_length) {
      settings.report(
          Kind::ignored, from_file.at,
          fmt::format("the command line says --sequence-length {}", draft.sequence_length));
    } else if (from_file.value) {
      settings.report(Kind::used, from_file.at, "tokens of a sequence");
    }
  } else if (from_file.value) {
    draft.sequence_length = *from_file.value;
    settings.report(Kind::used, from_file.at, "tokens of a sequence");
  } else {
    const std::int64_t longest = question.model.max_positions;
    draft.sequence_length = longest > 0 ? std::min(kAssumedSequence, longest) : kAssumedSequence;
    settings.report_missing(
        Kind::left_open, "sequence_length",
        fmt::format("not in the file: {} tokens assumed; --sequence-length says otherwise",
                    draft.sequence_length));
  }
}

void decide_recompute(Settings& settings, std::string_view key, const Trainer& trainer,
                      const ImportQuestion& question, Imported& draft) {
  if (question.recompute) {
    draft.strategy.recompute = *question.recompute;
  } else if (trainer.recompute) {
    draft.strategy.recompute = *trainer.recompute ? Recompute::full : Recompute::none;
  } else {
    draft.strategy.recompute = Recompute::none;
    settings.report_missing(Kind::left_open, key,
                            "not in the file: activations are kept, the default of transformers "
                            "and of PyTorch; --recompute full says that blocks are recomputed");
  }
}

void read_clipping(Settings& settings, std::string_view key, const Trainer& trainer,
                   Imported& draft) {
  constexpr double kLargest = 1e30;
  const auto norm = settings.number(key, 0.0, kLargest);
  if (norm.automatic) {
    const double value = trainer.clip_norm.value_or(kTrainerClipNorm);
    draft.clips_gradients = value > 0.0;
    settings.report(Kind::left_open, norm.at,
                    fmt::format("the Trainer's max_grad_norm: {:g}{}", value,
                                trainer.clip_norm ? "" : ", its default"));
  } else if (norm.value) {
    draft.clips_gradients = *norm.value > 0.0;
    settings.report(Kind::used, norm.at,
                    draft.clips_gradients
                        ? "updates wait for the norm of all gradients (our plan: clipping exact)"
                        : "gradients are not clipped");
  }
}

std::string to_string(Format format) {
  switch (format) {
    case Format::deepspeed:
      return "deepspeed";
    case Format::accelerate:
      return "accelerate";
    case Format::neox:
      return "gpt-neox";
    case Format::trainer_flags:
      break;
  }
  return "trainer flags";
}

bool Imported::refused() const {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return is_fault(finding.kind); });
}

}  // namespace offstage::imports
