#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/companion.h"
#include "cli/data_folder.h"
#include "cli/output.h"
#include "cli/planning.h"
#include "cli/report_page.h"
#include "cli/system_planning.h"
#include "cli/temporary_file.h"
#include "cli/train_page.h"
#include "platform/document.h"
#include "platform/error.h"
#include "platform/format.h"
#include "scheduler/lost_gpu.h"
#include "scheduler/plan_file.h"

// offstage train: makes the plan, or takes one, predicts its step time, and has offstage-exec carry
// it out.
namespace offstage::cli {
namespace {

// A machine that loses more than this has another fault.
constexpr std::size_t kMostLostGpus = 3;

struct TrainOptions {
  CommonOptions common;
  std::string config;
  std::string plan;
  std::string out;
  std::optional<std::int64_t> steps;
  std::string trace;
  std::string report;
  bool restart = false;
};

CLI::App* describe(CLI::App& app, TrainOptions& options) {
  CLI::App* command = app.add_subcommand("train", "Run a plan for real");
  command->add_option("CONFIG", options.config, "A run config with a `train` section")->required();
  command->add_option("--plan", options.plan, "A plan of this config (default: make one)");
  command->add_option("--out", options.out, "Keep the plan that is made in this file");
  command->add_option("--steps", options.steps, "Steps, instead of the config's")
      ->check(CLI::PositiveNumber);
  command->add_option("--trace", options.trace, "Write a Chrome/Perfetto trace to this file");
  add_report_option(*command, options.report);
  command->add_flag("--restart", options.restart,
                    "Begin again; an earlier run in train.checkpoint.directory is set aside");
  command->footer(
      "With a `checkpoint` section, a training goes on from the newest whole checkpoint; "
      "`offstage\n"
      "status DIR` and pause, resume, checkpoint, stop DIR look at and steer it.\n"
      "Examples:\n"
      "  offstage train run.yaml\n"
      "  offstage plan run.yaml --out plan.json && offstage train run.yaml --plan plan.json\n"
      "  offstage train run.yaml --steps 20 --trace measured.json");
  return command;
}

Error wrong_config(const std::string& file, const std::string& message) {
  return Error(ErrorCode::bad_input, message, Where{file, {}, {}});
}

// The config's plan, or the one of --plan with the config's `train` section.
Question read_inputs(const TrainOptions& options, const scheduler::DataDirectories& directories) {
  Question question = read_question(options.config, directories);
  require_own_method(question.config, "train");
  if (question.plan) {
    throw wrong_config(options.config,
                       fmt::format("this is a plan: what to train on is in the run config it was "
                                   "made from; run `offstage train CONFIG --plan {}`",
                                   options.config));
  }
  if (!question.config.train) {
    throw wrong_config(options.config,
                       "training needs a section `train` that names data and steps, such as "
                       "`train: {data: text.txt, steps: 200}`");
  }
  if (question.config.disturbances.only_simulated()) {
    throw platform::Document::load(options.config)
        .root()
        .at("disturbances")
        .error(
            "only `simulate` and `study` can make tasks and links slower; `train` runs on the "
            "machine as it is");
  }
  if (options.plan.empty()) return question;
  Question planned = read_question(options.plan, directories);
  if (!planned.plan) {
    throw wrong_config(options.plan, "--plan takes a plan, written by `offstage plan --out`");
  }
  planned.config.train = question.config.train;
  return planned;
}

// A plan in a file, and what was predicted for it.
struct PlanInHand {
  std::string file, hash;
  platform::Seconds step;
  scheduler::Plan plan;
  std::unique_ptr<TemporaryFile> temporary;  // the file, when nobody wants to keep it
};

PlanInHand make_plan(const Question& question, const std::string& file, const std::string& out) {
  const scheduler::PlanningResult result = answer(question);
  require_fit(result.plan.memory);
  PlanInHand plan{file, scheduler::plan_hash(result.plan), result.step, result.plan, {}};
  if (!out.empty()) scheduler::write_plan(result.plan, out);
  if (file.empty()) {
    if (out.empty()) plan.temporary = std::make_unique<TemporaryFile>(".plan.json");
    plan.file = plan.temporary ? plan.temporary->path() : out;
    if (plan.temporary) scheduler::write_plan(result.plan, plan.file);
  }
  say(fmt::format("offstage: training plan {}, predicted step time {}", plan.hash,
                  platform::to_text(result.step)));
  return plan;
}

std::vector<std::string> arguments_of(const TrainOptions& options, const PlanInHand& plan,
                                      const scheduler::DataDirectories& directories) {
  std::vector<std::string> arguments{"train",
                                     options.config,
                                     "--plan",
                                     plan.file,
                                     "--catalog",
                                     directories.catalog,
                                     "--models",
                                     directories.models,
                                     "--profiles",
                                     directories.profiles,
                                     "--predicted-step-s",
                                     fmt::to_string(plan.step.value)};
  if (options.steps) arguments.insert(arguments.end(), {"--steps", fmt::to_string(*options.steps)});
  if (options.common.json) arguments.emplace_back("--json");
  return arguments;
}

// What a report is made of: the run's trace, kept only where it was asked for by itself, and its
// answer.
class ReportInputs {
 public:
  explicit ReportInputs(const TrainOptions& options) : options_(options), trace_(options.trace) {
    if (options.report.empty()) return;
    summary_.emplace(".summary.json");
    if (trace_.empty()) trace_ = own_trace_.emplace(".trace.json").path();
  }

  void ask(std::vector<std::string>& arguments) const {
    if (summary_) arguments.insert(arguments.end(), {"--summary", summary_->path()});
    if (!trace_.empty()) arguments.insert(arguments.end(), {"--trace", trace_});
  }

  // Of several hosts, the first one tells.
  void write(const PlanInHand& plan, const scheduler::Profile& profile) const {
    if (!summary_ || std::filesystem::file_size(summary_->path()) == 0) return;
    report::write_page(train_page({.plan = plan.plan,
                                   .profile = profile,
                                   .predicted_step = plan.step,
                                   .trace_file = trace_,
                                   .summary_file = summary_->path()}),
                       options_.report);
  }

 private:
  const TrainOptions& options_;
  std::string trace_;
  std::optional<TemporaryFile> own_trace_, summary_;
};

// The GPU that ended a run, as the companion reported it: JSON on one line.
std::optional<std::string> read_loss(const TemporaryFile& report) {
  std::ifstream in(report.path());
  std::string line;
  if (!std::getline(in, line) || line.empty()) return std::nullopt;
  return line;
}

// Trains; when a GPU fails and there are checkpoints, plans for the others and goes on.
int train(const TrainOptions& options, Question question, PlanInHand plan,
          const scheduler::DataDirectories& directories) {
  const bool goes_on = question.config.train->checkpoint && question.config.machine.hosts == 1;
  std::vector<std::string> lost;
  const ReportInputs inputs(options);
  while (true) {
    auto arguments = arguments_of(options, plan, directories);
    inputs.ask(arguments);
    if (options.restart && lost.empty()) arguments.emplace_back("--restart");
    for (const std::string& loss : lost) arguments.insert(arguments.end(), {"--lost", loss});
    const bool last =
        !goes_on || lost.size() == kMostLostGpus || question.config.machine.gpus.size() == 1;
    const TemporaryFile report(".lost.json");
    if (!last) arguments.insert(arguments.end(), {"--report-lost", report.path()});
    const int status = run_companion(arguments);
    if (status == kDone) inputs.write(plan, question.config.profile);
    const auto loss = read_loss(report);
    if (status == kDone || !loss) return status;
    lost.push_back(*loss);
    const std::string gpu = nlohmann::json::parse(*loss).at("gpu");
    say(fmt::format("offstage: {} is lost; planning for the other {}", gpu,
                    question.config.machine.gpus.size() - 1));
    question = {scheduler::without_gpu(question.config, gpu, directories), {}};
    plan = make_plan(question, "", "");
  }
}

int run(const TrainOptions& options) {
  const auto directories = data_directories(find_data_folder(options.common.data));
  Question question = read_inputs(options, directories);
  require_companion();
  if (!options.report.empty()) report::require_writable(options.report);
  PlanInHand plan = make_plan(question, options.plan, options.out);
  if (!options.plan.empty()) {
    // What a plan for fewer GPUs may change is what the config leaves open.
    question.config.strategy = read_question(options.config, directories).config.strategy;
  }
  return train(options, std::move(question), std::move(plan), directories);
}

}  // namespace

void add_train_command(CLI::App& app, Action& action) {
  add_command<TrainOptions>(app, action, describe, run);
}

}  // namespace offstage::cli
