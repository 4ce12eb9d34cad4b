#include "cli/command.h"

#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/assumptions.h"
#include "cli/capacity/answer.h"
#include "cli/capacity/page.h"
#include "cli/capacity/plot.h"
#include "cli/capacity/report.h"
#include "cli/data_folder.h"
#include "cli/output.h"
#include "cli/planning.h"
#include "cli/report_page.h"
#include "cli/system_planning.h"
#include "platform/error.h"
#include "scheduler/plan_file.h"

// offstage capacity: the largest model and the largest batch, and what would make them larger.
namespace offstage::cli {
namespace {

struct CapacityOptions {
  CommonOptions common;
  std::string file, svg, out, report;
};

CLI::App* describe(CLI::App& app, CapacityOptions& options) {
  CLI::App* command = app.add_subcommand(
      "capacity", "The largest model and the largest batch, and what would make them larger");
  command->add_option("CONFIG", options.file, "A run config")->required();
  command->add_option("--svg", options.svg, "Draw size against batch and speed into this file");
  command->add_option("--out", options.out, "Write the largest model's plan to this file");
  add_report_option(*command, options.report);
  command->footer(
      "Looks along the published ladders (GPT-3, OPT, Llama, Qwen), at the config's model with "
      "more\n"
      "layers, and at its shape made wider and deeper. NVMe is left out unless a line says so. "
      "The\n"
      "speeds on the frontier come from short searches; the largest model's plan from a full one.\n"
      "Exit status 1 when not even the smallest model fits.\n\n"
      "Examples:\n"
      "  offstage capacity run.yaml\n"
      "  offstage capacity run.yaml --out largest.json && offstage simulate largest.json\n"
      "  offstage capacity run.yaml --json | jq .max_model.parameters");
  return command;
}

CapacityAnswer ask(const Question& question, const std::string& models) {
  if (question.plan) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{} is a plan, which fixes one model and every knob; capacity takes a "
                            "run config",
                            question.config.file));
  }
  try {
    return find_capacity(question.config, models);
  } catch (const Error& error) {
    throw placed(error, question.config.file);
  }
}

int run(const CapacityOptions& options) {
  const auto directories = data_directories(find_data_folder(options.common.data));
  const Question question = read_question(options.file, directories);
  require_own_method(question.config, "capacity");
  if (!options.report.empty()) report::require_writable(options.report);
  const CapacityAnswer capacity = ask(question, directories.models);
  if (capacity.plan && !options.out.empty()) {
    scheduler::write_plan(capacity.plan->plan, options.out);
  }
  if (capacity.best_row && !options.svg.empty()) write_svg(capacity, options.svg);
  if (!options.report.empty()) {
    report::write_page(capacity_page(capacity, question.config.profile), options.report);
  }
  if (options.common.json) {
    auto object = capacity_json(capacity);
    object["assumed"] = assumed_numbers(question.config.machine, question.config.profile);
    print_json(object);
  } else {
    std::string text = describe_capacity(capacity);
    if (const auto plot = terminal_plot(capacity)) text += *plot;
    print_text(text + describe_assumptions(
                          assumed_numbers(question.config.machine, question.config.profile)));
  }
  return capacity.best_row ? kDone : kAnswerIsNo;
}

}  // namespace

void add_capacity_command(CLI::App& app, Action& action) {
  add_command<CapacityOptions>(app, action, describe, run);
}

}  // namespace offstage::cli
