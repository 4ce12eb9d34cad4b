#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/compare_page.h"
#include "cli/output.h"
#include "cli/report_page.h"
#include "cli/table.h"
#include "platform/format.h"
#include "report/trace_comparison.h"
#include "report/trace_reader.h"

// offstage compare: two traces of one plan, task by task.
namespace offstage::cli {
namespace {

using nlohmann::json;
using platform::percent_text;
using platform::Seconds;
using platform::to_text;
using report::TraceComparison;
using report::TraceContents;

struct CompareOptions {
  CommonOptions common;
  std::string trace_a, trace_b;
  std::optional<double> tolerance;
  std::string report;
};

CLI::App* describe(CLI::App& app, CompareOptions& options) {
  CLI::App* command = app.add_subcommand("compare", "Compare two traces, task by task");
  command->add_option("TRACE_A", options.trace_a, "A trace, usually the simulated one")->required();
  command->add_option("TRACE_B", options.trace_b, "The trace to hold it against, usually measured")
      ->required();
  command
      ->add_option("--tolerance", options.tolerance,
                   "Exit with status 1 when the step time is off by more than this fraction")
      ->check(CLI::NonNegativeNumber);
  add_report_option(*command, options.report);
  command->footer(
      "Times are those of one step in the steady state: all steps but the first and the last.\n"
      "Errors are |A - B| / B.\n\n"
      "Examples:\n"
      "  offstage simulate run.yaml --trace simulated.json\n"
      "  offstage train run.yaml --trace measured.json\n"
      "  offstage compare simulated.json measured.json --tolerance 0.15");
  return command;
}

std::string signed_percent(Seconds a, Seconds b, double error) {
  return (a < b ? "-" : "+") + percent_text(error);
}

json to_json(const TraceComparison& comparison) {
  json by_kind = json::array();
  for (const auto& kind : comparison.by_kind) {
    by_kind.push_back({{"kind", kind.kind},
                       {"tasks", kind.tasks},
                       {"a_s", kind.a.value},
                       {"b_s", kind.b.value},
                       {"error", kind.error}});
  }
  json object{{"step_error", comparison.step_error}, {"step_a_s", comparison.step_a.value},
              {"step_b_s", comparison.step_b.value}, {"by_kind", by_kind},
              {"only_in_a", comparison.only_in_a},   {"only_in_b", comparison.only_in_b}};
  if (comparison.worst) {
    object["worst"] = {{"task", comparison.worst->name},
                       {"a_s", comparison.worst->a.value},
                       {"b_s", comparison.worst->b.value}};
  }
  return object;
}

std::string to_text(const TraceComparison& comparison, const CompareOptions& options,
                    const TraceContents& a, const TraceContents& b) {
  std::string text = fmt::format("A  {} ({})\nB  {} ({})\n\n", options.trace_a, a.backend,
                                 options.trace_b, b.backend);
  Table table({"work of one step", "tasks", "A", "B", "A against B"});
  for (const auto& kind : comparison.by_kind) {
    table.add({kind.kind, fmt::to_string(kind.tasks), to_text(kind.a), to_text(kind.b),
               signed_percent(kind.a, kind.b, kind.error)});
  }
  table.add({"step time", "", to_text(comparison.step_a), to_text(comparison.step_b),
             signed_percent(comparison.step_a, comparison.step_b, comparison.step_error)});
  text += table.text();
  if (comparison.worst) {
    text += fmt::format("\nLargest difference: {}, {} in A and {} in B.\n", comparison.worst->name,
                        to_text(comparison.worst->a), to_text(comparison.worst->b));
  }
  if (comparison.only_in_a + comparison.only_in_b > 0) {
    text += fmt::format(
        "Left out, being in one trace only: {} tasks of a step in A, {} in B. Are these traces of "
        "one plan?\n",
        comparison.only_in_a, comparison.only_in_b);
  }
  return text;
}

int run(const CompareOptions& options) {
  const TraceContents a = report::read_chrome_trace(options.trace_a);
  const TraceContents b = report::read_chrome_trace(options.trace_b);
  if (a.plan_hash != b.plan_hash) {
    say(fmt::format("offstage: the traces are of different plans ({} and {})", a.plan_hash,
                    b.plan_hash));
  }
  const TraceComparison comparison = report::compare_traces(a, b);
  if (!options.report.empty()) report::write_page(compare_page(comparison, a, b), options.report);
  const bool within = !options.tolerance || comparison.step_error <= *options.tolerance;
  if (options.common.json) {
    json object = to_json(comparison);
    if (options.tolerance) {
      object["tolerance"] = *options.tolerance;
      object["within_tolerance"] = within;
    }
    print_json(object);
  } else {
    std::string text = to_text(comparison, options, a, b);
    if (options.tolerance) {
      text += fmt::format("\nThe step time is {} the tolerance of {}.\n",
                          within ? "within" : "outside", percent_text(*options.tolerance));
    }
    print_text(text);
  }
  return within ? kDone : kAnswerIsNo;
}

}  // namespace

void add_compare_command(CLI::App& app, Action& action) {
  add_command<CompareOptions>(app, action, describe, run);
}

}  // namespace offstage::cli
