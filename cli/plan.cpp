#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/assumptions.h"
#include "cli/command.h"
#include "cli/data_folder.h"
#include "cli/output.h"
#include "cli/plan_report.h"
#include "cli/planning.h"
#include "scheduler/plan_file.h"
#include "sim/evaluate.h"

// offstage plan: searches for a plan, or applies the strategy of the config, and explains it.
namespace offstage::cli {
namespace {

struct PlanOptions {
  CommonOptions common;
  std::string file;
  std::string out;
};

CLI::App* describe(CLI::App& app, PlanOptions& options) {
  CLI::App* command =
      app.add_subcommand("plan", "Find a plan: what fits, how fast, in which order of work");
  command->add_option("CONFIG", options.file, "A run config, or a plan to show again")->required();
  command->add_option("--out", options.out, "Write the plan to this file");
  command->footer(
      "Prints the strategy, the memory ledger of every pool and the predicted step time. Exit\n"
      "status 1 when the model does not fit.\n\n"
      "Examples:\n"
      "  offstage plan run.yaml\n"
      "  offstage plan run.yaml --out plan.json\n"
      "  offstage plan run.yaml --json | jq .step_s");
  return command;
}

int run(const PlanOptions& options) {
  const auto directories = data_directories(find_data_folder(options.common.data));
  const Question question = read_question(options.file, directories);
  const scheduler::PlanningResult result = answer(question);
  std::optional<Simulated> prediction;
  if (result.fits) {
    prediction = simulate_plan(result.plan, question.config.profile, sim::kSimulatedSteps);
    if (!options.out.empty()) scheduler::write_plan(result.plan, options.out);
  }
  const PlanReport report{
      .result = result,
      .prediction = prediction ? &*prediction : nullptr,
      .assumed = assumed_numbers(question.config.machine, question.config.profile)};
  if (options.common.json) {
    print_json(plan_report_json(report));
  } else {
    std::string text = describe_plan(report);
    if (result.fits && !options.out.empty()) text += fmt::format("\nWritten to {}\n", options.out);
    print_text(text);
  }
  return result.fits ? kDone : kAnswerIsNo;
}

}  // namespace

void add_plan_command(CLI::App& app, Action& action) {
  add_command<PlanOptions>(app, action, describe, run);
}

}  // namespace offstage::cli
