#include "exec/train_report.h"

#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "platform/format.h"

namespace offstage::exec {

using platform::Seconds;
using platform::to_text;

ProgressLine::ProgressLine(const scheduler::Plan& plan, std::int64_t steps,
                           std::optional<Seconds> predicted)
    : tokens_per_step_(static_cast<double>(plan.workload.tokens_per_step())),
      steps_(steps),
      predicted_(predicted),
      shown_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (shown_ && written_) {
    std::fputc('\n', stderr);
  }
}

void ProgressLine::show(const StepReport& report, const std::vector<PoolPeak>& memory) {
  if (!shown_) {
    return;
  }
  const std::string predicted =
      predicted_.has_value() ? fmt::format(" (predicted {:.3f} s)", predicted_->value) : "";
  std::string pools;
  for (const PoolPeak& pool : memory) {
    pools += fmt::format("  {} {}", pool.pool, to_text(pool.peak));
  }
  const std::string line = fmt::format(
      "step {}/{}  loss {:.4f}  {:.0f} tokens/s  {:.3f} s a step{}{}", report.step, steps_,
      report.loss, tokens_per_step_ / report.time.value, report.time.value, predicted, pools);
  std::fputs(("\r\033[K" + line).c_str(), stderr);
  std::fflush(stderr);
  written_ = true;
}

nlohmann::json summary_json(const TrainingSummary& summary) {
  const TrainingOutcome& outcome = summary.outcome;
  const TrainResult& result = outcome.result;
  nlohmann::json memory = nlohmann::json::array();
  for (const PoolPeak& pool : result.memory) {
    memory.push_back({{"pool", pool.pool},
                      {"peak_bytes", pool.peak.value},
                      {"planned_bytes", pool.planned.value}});
  }
  nlohmann::json json{{"steps", result.losses.size()},
                      {"steps_done", outcome.steps_done},
                      {"resumed_from", outcome.resumed_from},
                      {"stopped", outcome.stopped},
                      {"loss", result.losses},
                      {"unigram_entropy", summary.unigram_entropy},
                      {"memory", memory},
                      {"plan_hash", summary.plan_hash}};
  if (!result.losses.empty()) {
    json["initial_loss"] = result.losses.front();
    json["final_loss"] = result.losses.back();
  }
  for (const auto& [step, loss] : outcome.validation) {
    json["validation"].push_back({{"step", step}, {"loss", loss}});
  }
  if (result.step > Seconds{}) {
    json["step_s_median"] = result.step.value;
    json["tokens_per_s"] = summary.tokens_per_step / result.step.value;
  }
  for (const LossOfGpu& loss : summary.lost) {
    json["lost_gpus"].push_back(to_json(loss));
  }
  if (summary.predicted_step) {
    json["predicted_step_s"] = summary.predicted_step->value;
  }
  if (outcome.checkpoint) {
    json["checkpoint"] = *summary.checkpoint_directory + "/" + checkpoint_name(*outcome.checkpoint);
  }
  return json;
}

void print_json(const TrainingSummary& summary) {
  fmt::print("{}\n", summary_json(summary).dump(2));
}

void print_text(const TrainingSummary& summary) {
  const TrainingOutcome& outcome = summary.outcome;
  const TrainResult& result = outcome.result;
  for (const LossOfGpu& loss : summary.lost) {
    fmt::print("lost {} after step {}: {}\n", loss.gpu, loss.step, loss.error);
  }
  if (outcome.resumed_from > 0) {
    fmt::print("went on after step {}\n", outcome.resumed_from);
  }
  fmt::print("trained {} steps of plan {}{}\n", result.losses.size(), summary.plan_hash,
             outcome.stopped ? ", and stopped as it was told" : "");
  if (!result.losses.empty()) {
    fmt::print("  loss     {:.4f} at first, {:.4f} at last, in nats a token\n",
               result.losses.front(), result.losses.back());
    fmt::print("           {:.4f} is what knowing only the tokens' frequencies would give\n",
               summary.unigram_entropy);
  }
  if (!outcome.validation.empty()) {
    fmt::print("           {:.4f} on the validation data, after step {}\n",
               outcome.validation.back().second, outcome.validation.back().first);
  }
  if (result.step > Seconds{}) {
    fmt::print("  step     {:.3f} s measured (median)", result.step.value);
    if (summary.predicted_step) {
      fmt::print(", {:.3f} s predicted: off by {:+.1f} %", summary.predicted_step->value,
                 100.0 * (*summary.predicted_step / result.step - 1.0));
    }
    fmt::print("\n  speed    {:.0f} tokens/s\n", summary.tokens_per_step / result.step.value);
  }
  fmt::print("  memory   {:<8} {:>12} {:>12}\n", "pool", "peak", "planned");
  for (const PoolPeak& pool : result.memory) {
    fmt::print("           {:<8} {:>12} {:>12}\n", pool.pool, to_text(pool.peak),
               to_text(pool.planned));
  }
  if (outcome.checkpoint) {
    fmt::print("  checkpoint of step {} in {}\n", *outcome.checkpoint,
               *summary.checkpoint_directory);
  }
}

}  // namespace offstage::exec
