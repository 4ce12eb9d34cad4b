#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "imports/draft.h"

// The three numbers of a batch: what the file says, what follows, and whether they agree.
namespace offstage::imports {
namespace {

using Kind = Finding::Kind;
using Count = std::optional<std::int64_t>;

constexpr std::int64_t kMostSequences = std::int64_t{1} << 24;

struct Numbers {
  Count train, micro, accumulation;
  std::int64_t ranks = 1;

  std::int64_t product() const { return *micro * *accumulation * ranks; }
  bool complete() const { return train && micro && accumulation; }
  bool agree() const { return *train == product(); }
};

struct Written {
  Setting<std::int64_t> train, micro, accumulation;
};

// The largest micro-batch up to the Trainer's default that deals `train` evenly.
std::int64_t even_micro_batch(std::int64_t train, std::int64_t ranks) {
  const std::int64_t each = std::max<std::int64_t>(1, train / ranks);
  std::int64_t micro = std::min(kTrainerMicroBatch, each);
  while (each % micro != 0) --micro;
  return micro;
}

// DeepSpeedConfig._set_batch_related_parameters, with the Trainer's defaults where DeepSpeed has
// none.
void derive(Numbers& numbers, bool micro_is_automatic) {
  const std::int64_t ranks = numbers.ranks;
  if (numbers.train) {
    if (!numbers.micro && numbers.accumulation) {
      numbers.micro = *numbers.train / ranks / *numbers.accumulation;
    } else if (!numbers.micro) {
      numbers.micro =
          micro_is_automatic ? even_micro_batch(*numbers.train, ranks) : *numbers.train / ranks;
    }
    numbers.micro = std::max<std::int64_t>(1, *numbers.micro);
    if (!numbers.accumulation) numbers.accumulation = *numbers.train / *numbers.micro / ranks;
    numbers.accumulation = std::max<std::int64_t>(1, *numbers.accumulation);
    return;
  }
  if (!numbers.micro) numbers.micro = kTrainerMicroBatch;
  if (!numbers.accumulation) numbers.accumulation = kTrainerAccumulation;
  numbers.train = numbers.product();
}

// The command line has the last word: what contradicts it in the file falls away.
void override_numbers(Numbers& numbers, const ImportQuestion& question) {
  if (question.micro_batch) numbers.micro = question.micro_batch;
  if (question.global_batch) numbers.train = question.global_batch;
  const bool overridden = question.micro_batch || question.global_batch;
  if (!overridden || !numbers.complete() || numbers.agree()) return;
  (question.global_batch ? numbers.accumulation : numbers.train).reset();
}

std::string product_text(const Numbers& numbers) {
  return fmt::format("{} x {} x {} = {}", *numbers.micro, *numbers.accumulation, numbers.ranks,
                     numbers.product());
}

void report_one(Settings& settings, std::string_view key, const Setting<std::int64_t>& written,
                std::int64_t result, const std::string& meaning) {
  if (key.empty()) return;
  if (written.automatic) {
    settings.report(Kind::left_open, written.at, fmt::format("{} {}", result, meaning));
  } else if (!written.at) {
    settings.report_missing(Kind::left_open, key,
                            fmt::format("not in the file: {} {}", result, meaning));
  } else if (written.value && *written.value != result) {
    settings.report(Kind::ignored, written.at,
                    fmt::format("the command line leads to {} {}", result, meaning));
  } else if (written.value) {
    settings.report(Kind::used, written.at, meaning);
  }
}

std::string whence(bool open, bool from_trainer, bool is_default) {
  if (!open) return "";
  if (from_trainer) return ", the Trainer's";
  return is_default ? ", the default of Hugging Face's Trainer" : ", so that the batch comes out";
}

void report_disagreement(Settings& settings, const Written& written, const Numbers& numbers,
                         const ImportQuestion& question) {
  const std::string text = fmt::format(
      "{} is not micro-batch x accumulation x GPUs = {}; write {}, or change one of the three",
      *numbers.train, product_text(numbers), numbers.product());
  if (!question.global_batch && written.train.value) {
    settings.report(Kind::contradictory, written.train.at, text);
  } else {
    settings.report_missing(Kind::contradictory, "--global-batch", text);
  }
}

// HfTrainerDeepSpeedConfig.fill_match refuses a number that differs from the Trainer's.
void check_trainer(Settings& settings, const Setting<std::int64_t>& written, const Count& trainer,
                   std::string_view flag) {
  if (!written.value || !trainer || *written.value == *trainer) return;
  settings.report(Kind::contradictory, written.at,
                  fmt::format("--{} says {}, and the Trainer refuses the difference; write auto",
                              flag, *trainer));
}

}  // namespace

void read_batch(Settings& settings, const BatchKeys& keys, const Trainer& trainer,
                const ImportQuestion& question, Imported& draft) {
  Written written;
  if (!keys.train.empty()) written.train = settings.whole(keys.train, 1, kMostSequences);
  if (!keys.micro.empty()) written.micro = settings.whole(keys.micro, 1, kMostSequences);
  written.accumulation = settings.whole(keys.accumulation, 1, kMostSequences);
  Numbers numbers{written.train.value, written.micro.value, written.accumulation.value,
                  draft.strategy.data};
  check_trainer(settings, written.micro, trainer.micro_batch, "per_device_train_batch_size");
  check_trainer(settings, written.accumulation, trainer.accumulation,
                "gradient_accumulation_steps");
  if (!numbers.micro) numbers.micro = trainer.micro_batch;
  if (!numbers.accumulation) numbers.accumulation = trainer.accumulation;
  override_numbers(numbers, question);
  const Numbers known = numbers;
  const bool micro_is_automatic = written.micro.automatic || written.train.automatic ||
                                  (question.global_batch && !written.micro.at);
  derive(numbers, micro_is_automatic);
  draft.strategy.micro_batch = *numbers.micro;
  draft.global_batch = numbers.product();
  const bool fits = numbers.agree();
  if (!fits) report_disagreement(settings, written, numbers, question);
  if (fits || question.global_batch || !written.train.value) {
    report_one(settings, keys.train, written.train, *numbers.train,
               fmt::format("sequences a step = {}", product_text(numbers)));
  }
  report_one(settings, keys.micro.empty() ? "micro_batch" : keys.micro, written.micro,
             *numbers.micro,
             fmt::format("sequences a GPU at once{}",
                         whence(!written.micro.value && !question.micro_batch,
                                trainer.micro_batch.has_value(),
                                !known.micro && *numbers.micro == kTrainerMicroBatch)));
  report_one(settings, keys.accumulation, written.accumulation, *numbers.accumulation,
             fmt::format("micro-batches a step{}",
                         whence(!written.accumulation.value, trainer.accumulation.has_value(),
                                !known.accumulation && !known.train)));
}

}  // namespace offstage::imports
