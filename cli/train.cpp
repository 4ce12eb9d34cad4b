#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

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
#include "scheduler/plan_file.h"

// offstage train: makes the plan, or takes one, predicts its step time, and has offstage-exec carry
// it out.
namespace offstage::cli {
namespace {

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

int run(const TrainOptions& options) {
  const auto directories = data_directories(find_data_folder(options.common.data));
  const Question question = read_inputs(options, directories);
  require_companion();
  if (!options.report.empty()) report::require_writable(options.report);
  const scheduler::PlanningResult result = answer(question);
  require_fit(result.plan.memory);

  std::optional<TemporaryFile> temporary;
  std::string plan_file = options.plan;
  if (plan_file.empty()) {
    if (options.out.empty()) temporary.emplace(".plan.json");
    plan_file = temporary ? temporary->path() : options.out;
    scheduler::write_plan(result.plan, plan_file);
  } else if (!options.out.empty()) {
    scheduler::write_plan(result.plan, options.out);
  }
  say(fmt::format("offstage: training plan {}, predicted step time {}",
                  scheduler::plan_hash(result.plan), platform::to_text(result.step)));

  std::vector<std::string> arguments{"train",
                                     options.config,
                                     "--plan",
                                     plan_file,
                                     "--catalog",
                                     directories.catalog,
                                     "--models",
                                     directories.models,
                                     "--profiles",
                                     directories.profiles,
                                     "--predicted-step-s",
                                     fmt::to_string(result.step.value)};
  // What the report is made of, kept only where it was asked for by itself.
  std::optional<TemporaryFile> own_trace, summary;
  std::string trace = options.trace;
  if (!options.report.empty()) {
    summary.emplace(".summary.json");
    arguments.insert(arguments.end(), {"--summary", summary->path()});
    if (trace.empty()) trace = own_trace.emplace(".trace.json").path();
  }
  if (options.steps) arguments.insert(arguments.end(), {"--steps", fmt::to_string(*options.steps)});
  if (!trace.empty()) arguments.insert(arguments.end(), {"--trace", trace});
  if (options.restart) arguments.emplace_back("--restart");
  if (options.common.json) arguments.emplace_back("--json");
  const int status = run_companion(arguments);
  // Of several hosts, the first one tells.
  if (status == kDone && summary && std::filesystem::file_size(summary->path()) > 0) {
    report::write_page(train_page({.plan = result.plan,
                                   .profile = question.config.profile,
                                   .predicted_step = result.step,
                                   .trace_file = trace,
                                   .summary_file = summary->path()}),
                       options.report);
  }
  return status;
}

}  // namespace

void add_train_command(CLI::App& app, Action& action) {
  add_command<TrainOptions>(app, action, describe, run);
}

}  // namespace offstage::cli
