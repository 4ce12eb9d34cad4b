#include "exec/train_command.h"

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "exec/pretrained.h"
#include "exec/trainer.h"
#include "platform/document.h"
#include "platform/error.h"
#include "platform/format.h"
#include "report/chrome_trace.h"
#include "scheduler/cost_model.h"
#include "scheduler/plan_file.h"
#include "scheduler/run_config.h"

namespace offstage::exec {

using platform::Seconds;

namespace {

struct TrainRequest {
  std::string config;  // the run config: its `train` section says on what, and how long
  std::string plan;    // the plan file
  scheduler::DataDirectories directories;
  std::optional<std::int64_t> steps;      // instead of the config's
  std::optional<std::string> trace;       // Chrome trace to write
  std::optional<Seconds> predicted_step;  // shown beside the measured one
  bool json = false;                      // one JSON object on stdout, else text
};

struct Inputs {
  scheduler::Plan plan;
  scheduler::Profile profile;
  scheduler::TrainConfig train;
};

Inputs load(const TrainRequest& request) {
  const auto config = load_run_config(request.config, request.directories);
  if (!config.train.has_value()) {
    throw Error(ErrorCode::bad_input, "no `train` section: it names data and steps",
                {.file = request.config, .line = {}, .column = {}});
  }
  // A plan file is a run config too, and names the machine it was made for.
  const auto planned = load_run_config(request.plan, request.directories);
  Inputs inputs{scheduler::read_plan(platform::Document::load(request.plan), planned.machine),
                planned.profile, *config.train};
  const workloads::Workload& asked = config.workload;
  const workloads::Workload& had = inputs.plan.workload;
  if (asked.model_config != had.model_config || asked.sequence_length != had.sequence_length ||
      asked.global_batch != had.global_batch || asked.precision != had.precision) {
    throw Error(ErrorCode::bad_input,
                fmt::format("the plan was made for another workload than that of {}: plan again",
                            request.config),
                {.file = request.plan, .line = {}, .column = {}});
  }
  inputs.train.steps = request.steps.value_or(inputs.train.steps);
  return inputs;
}

// One line that is written over, on a terminal only.
class ProgressLine {
 public:
  ProgressLine(const scheduler::Plan& plan, std::int64_t steps, std::optional<Seconds> predicted)
      : tokens_per_step_(static_cast<double>(plan.workload.tokens_per_step())),
        steps_(steps),
        predicted_(predicted),
        shown_(isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() {
    if (shown_ && written_) {
      std::fputc('\n', stderr);
    }
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const StepReport& report) {
    if (!shown_) {
      return;
    }
    const std::string predicted =
        predicted_.has_value() ? fmt::format(" (predicted {:.3f} s)", predicted_->value) : "";
    const std::string line = fmt::format(
        "step {}/{}  loss {:.4f}  {:.0f} tokens/s  {:.3f} s a step{}", report.step, steps_,
        report.loss, tokens_per_step_ / report.time.value, report.time.value, predicted);
    std::fputs(("\r\033[K" + line).c_str(), stderr);
    std::fflush(stderr);
    written_ = true;
  }

 private:
  double tokens_per_step_;
  std::int64_t steps_;
  std::optional<Seconds> predicted_;
  bool shown_;
  bool written_ = false;
};

// What is printed, in either form.
struct Summary {
  const TrainResult& result;
  std::string plan_hash;
  double tokens_per_s = 0.0;
  double unigram_entropy = 0.0;
  std::optional<Seconds> predicted_step;
};

void print_json(const Summary& summary) {
  const TrainResult& result = summary.result;
  nlohmann::json memory = nlohmann::json::array();
  for (const PoolPeak& pool : result.memory) {
    memory.push_back({{"pool", pool.pool},
                      {"peak_bytes", pool.peak.value},
                      {"planned_bytes", pool.planned.value}});
  }
  nlohmann::json json{{"steps", result.losses.size()},
                      {"loss", result.losses},
                      {"initial_loss", result.losses.front()},
                      {"final_loss", result.losses.back()},
                      {"unigram_entropy", summary.unigram_entropy},
                      {"step_s_median", result.step.value},
                      {"tokens_per_s", summary.tokens_per_s},
                      {"memory", memory},
                      {"plan_hash", summary.plan_hash}};
  if (summary.predicted_step.has_value()) {
    json["predicted_step_s"] = summary.predicted_step->value;
  }
  fmt::print("{}\n", json.dump(2));
}

void print_text(const Summary& summary) {
  const TrainResult& result = summary.result;
  fmt::print("trained {} steps of plan {}\n", result.losses.size(), summary.plan_hash);
  fmt::print("  loss     {:.4f} at first, {:.4f} at last, in nats a token\n", result.losses.front(),
             result.losses.back());
  fmt::print("           {:.4f} is what knowing only the tokens' frequencies would give\n",
             summary.unigram_entropy);
  fmt::print("  step     {:.3f} s measured (median)", result.step.value);
  if (summary.predicted_step.has_value()) {
    fmt::print(", {:.3f} s predicted: off by {:+.1f} %", summary.predicted_step->value,
               100.0 * (*summary.predicted_step / result.step - 1.0));
  }
  fmt::print("\n  speed    {:.0f} tokens/s\n", summary.tokens_per_s);
  fmt::print("  memory   {:<8} {:>12} {:>12}\n", "pool", "peak", "planned");
  for (const PoolPeak& pool : result.memory) {
    fmt::print("           {:<8} {:>12} {:>12}\n", pool.pool, to_text(pool.peak),
               to_text(pool.planned));
  }
}

void write_trace(const Inputs& inputs, const TrainResult& result, const std::string& file,
                 const std::string& hash) {
  const auto costs = make_costs(inputs.plan, inputs.profile, result.graph);
  report::write_chrome_trace({.graph = result.graph,
                              .trace = result.trace,
                              .costs = costs,
                              .first_step = static_cast<std::uint32_t>(result.first_step),
                              .offset = {}},
                             inputs.plan.machine,
                             {.file = file, .backend = "cpu", .plan_hash = hash});
}

// Before the training, not after it: hours may lie between.
void require_writable(const std::string& file) {
  if (!std::ofstream(file, std::ios::app)) {
    throw Error(ErrorCode::io, fmt::format("{}: the trace can't be written there", file));
  }
}

void train(const TrainRequest& request) {
  const Inputs inputs = load(request);
  if (request.trace.has_value()) {
    require_writable(*request.trace);
  }
  require_saveable(inputs.train);
  ProgressLine progress(inputs.plan, inputs.train.steps, request.predicted_step);
  TrainerOptions options;
  options.lone_times = [&inputs](const scheduler::TaskGraph& graph) {
    std::vector<Seconds> times;
    for (const scheduler::TaskCost& cost : make_costs(inputs.plan, inputs.profile, graph)) {
      times.push_back(lone_time(inputs.plan.machine, cost));
    }
    return times;
  };
  options.on_step = [&progress](const StepReport& report) { progress.show(report); };
  Trainer trainer(inputs.plan, inputs.train, std::move(options));
  for (const std::string& file : trainer.sampler().unused_files()) {
    fmt::print(stderr, "offstage: {} is shorter than a sequence and left out\n", file);
  }
  const TrainResult result = trainer.train(inputs.train.steps);
  if (inputs.train.save) {
    save_pretrained(*inputs.train.save, inputs.plan.workload, inputs.plan.table,
                    trained_weights(inputs.plan, trainer.state(), trainer.nvme()));
  }
  const Summary summary{
      .result = result,
      .plan_hash = plan_hash(inputs.plan),
      .tokens_per_s =
          static_cast<double>(inputs.plan.workload.tokens_per_step()) / result.step.value,
      .unigram_entropy = unigram_entropy(trainer.data()),
      .predicted_step = request.predicted_step};
  if (request.trace.has_value()) {
    write_trace(inputs, result, *request.trace, summary.plan_hash);
  }
  request.json ? print_json(summary) : print_text(summary);
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Train a plan on this machine's virtual GPUs");
  // The options outlive this function inside the callback.
  const auto request = std::make_shared<TrainRequest>();
  command->add_option("config", request->config, "Run config with a `train` section")->required();
  command->add_option("--plan", request->plan, "Plan file, made for the config")->required();
  command->add_option("--catalog", request->directories.catalog, "Folder of platforms")->required();
  command->add_option("--models", request->directories.models, "Folder of models")->required();
  command->add_option("--profiles", request->directories.profiles, "Folder of profiles")
      ->required();
  command->add_option("--steps", request->steps, "Steps, instead of the config's")
      ->check(CLI::PositiveNumber);
  command->add_option("--trace", request->trace,
                      "Write a Chrome trace of the last window of steps");
  command->add_option_function<double>(
      "--predicted-step-s",
      [request](double seconds) { request->predicted_step = Seconds{seconds}; },
      "Predicted seconds of a step, shown beside the measured ones");
  command->add_flag("--json", request->json, "One JSON object on stdout");
  command->callback([request] { train(*request); });
}

}  // namespace offstage::exec
