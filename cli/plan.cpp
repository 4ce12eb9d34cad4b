#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/assumptions.h"
#include "cli/command.h"
#include "cli/data_folder.h"
#include "cli/explain_report.h"
#include "cli/import_plan.h"
#include "cli/output.h"
#include "cli/plan_report.h"
#include "cli/planning.h"
#include "cli/report_page.h"
#include "cli/step_interval.h"
#include "cli/system_planning.h"
#include "cli/system_report.h"
#include "platform/error.h"
#include "scheduler/plan_file.h"
#include "sim/evaluate.h"

// offstage plan: searches for a plan, or applies the strategy of the config, and explains it.
namespace offstage::cli {
namespace {

struct PlanOptions {
  CommonOptions common;
  std::string file;
  std::string out;
  std::string report;
  bool explain = false;
  ImportOptions import;
};

CLI::App* describe(CLI::App& app, PlanOptions& options) {
  CLI::App* command =
      app.add_subcommand("plan", "Find a plan: what fits, how fast, in which order of work");
  command->add_option("CONFIG", options.file, "A run config, or a plan to show again");
  command->add_option("--out", options.out, "Write the plan to this file");
  command->add_flag(
      "--explain", options.explain,
      "Say what each resource needs, where time is lost, and what others' estimators\n"
      "would have answered");
  add_report_option(*command, options.report);
  add_import_options(*command, options.import);
  command->footer(
      "Prints the strategy, the memory ledger of every pool and the predicted step time. Exit\n"
      "status 1 when the model does not fit.\n\n"
      "Examples:\n"
      "  offstage plan run.yaml\n"
      "  offstage plan run.yaml --out plan.json\n"
      "  offstage plan run.yaml --explain\n"
      "  offstage plan run.yaml --report plan.html\n"
      "  offstage plan run.yaml --json | jq .step_s\n"
      "  offstage plan --import ds_z3.json --model llama-2-7b --platform dgx-a100-80");
  return command;
}

// The system that the config names, as its users run it.
int run_system(const PlanOptions& options, const scheduler::RunConfig& config) {
  if (options.explain || !options.out.empty()) {
    throw Error(ErrorCode::bad_usage,
                "--explain and --out are for offstage's own plans, not for a published system");
  }
  const auto plan = plan_system(config);
  std::optional<SimulatedSystem> prediction;
  if (plan.memory.fits()) prediction = simulate_system(plan, config.profile);
  if (!options.report.empty()) {
    report::write_page(system_page(plan, prediction ? &*prediction : nullptr, config.profile),
                       options.report);
  }
  const SystemReport report{.plan = plan,
                            .prediction = prediction ? &*prediction : nullptr,
                            .profile = config.profile.name,
                            .assumed = assumed_numbers(config.machine, config.profile)};
  if (options.common.json) {
    auto object = system_plan_json(report);
    add_step_interval(object, config.profile);
    print_json(object);
  } else {
    std::string text = describe_system_plan(report);
    if (prediction) {
      text += describe_step_interval(prediction->metrics.step, config.profile);
    }
    print_text(text);
  }
  return plan.memory.fits() ? kDone : kAnswerIsNo;
}

void require_one_question(const PlanOptions& options) {
  const bool imports = !options.import.file.empty();
  if (imports != options.file.empty()) {
    throw Error(ErrorCode::bad_usage,
                "plan takes a CONFIG, or --import FILE instead; see `offstage plan --help`");
  }
  if (imports && (options.explain || !options.out.empty() || !options.report.empty())) {
    throw Error(
        ErrorCode::bad_usage,
        "--explain, --out and --report are for offstage's own plans, not for an imported file");
  }
}

int run(const PlanOptions& options) {
  require_one_question(options);
  const auto directories = data_directories(find_data_folder(options.common.data));
  if (!options.import.file.empty()) {
    return run_import(options.import, directories, options.common.json);
  }
  const Question question = read_question(options.file, directories);
  if (question.config.system) return run_system(options, question.config);
  const scheduler::PlanningResult result = answer(question);
  std::optional<Simulated> prediction;
  if (result.fits) {
    prediction = simulate_plan(result.plan, question.config.profile, sim::kSimulatedSteps);
    if (!options.out.empty()) scheduler::write_plan(result.plan, options.out);
  }
  const Simulated* predicted = prediction ? &*prediction : nullptr;
  if (!options.report.empty()) {
    report::write_page(plan_page(result.plan, predicted, question.config.profile), options.report);
  }
  const PlanReport report{
      .result = result,
      .prediction = predicted,
      .assumed = assumed_numbers(question.config.machine, question.config.profile)};
  std::optional<Explanation> explanation;
  if (options.explain) explanation = explain(question, result, predicted);
  if (options.common.json) {
    auto object = plan_report_json(report);
    add_step_interval(object, question.config.profile);
    if (explanation) object["explain"] = explanation_json(*explanation, result, predicted);
    print_json(object);
  } else {
    std::string text = describe_plan(report);
    if (prediction) {
      text += describe_step_interval(prediction->metrics.step, question.config.profile);
    }
    if (explanation) text += describe_explanation(*explanation, result, predicted);
    if (result.fits && !options.out.empty()) text += fmt::format("\nWritten to {}\n", options.out);
    if (!options.report.empty()) text += fmt::format("\nReport written to {}\n", options.report);
    print_text(text);
  }
  return result.fits ? kDone : kAnswerIsNo;
}

}  // namespace

void add_plan_command(CLI::App& app, Action& action) {
  add_command<PlanOptions>(app, action, describe, run);
}

}  // namespace offstage::cli
