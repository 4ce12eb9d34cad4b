#include <fstream>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/output.h"
#include "cli/table.h"
#include "platform/error.h"
#include "report/trace_jitter.h"
#include "report/trace_reader.h"

// offstage jitter: how much tasks vary in a recorded run, for simulations that vary alike.
namespace offstage::cli {
namespace {

struct JitterOptions {
  CommonOptions common;
  std::string trace;
  std::string out;
};

CLI::App* describe(CLI::App& app, JitterOptions& options) {
  CLI::App* command =
      app.add_subcommand("jitter", "How much tasks vary from step to step in a trace");
  command->add_option("TRACE", options.trace, "A trace of a run: `train --trace FILE`")->required();
  command->add_option("--out", options.out, "Write the distributions to this YAML file");
  command->footer(
      "A task's time is taken beside the median of its own times; the first step is left out.\n\n"
      "Examples:\n"
      "  offstage train run.yaml --steps 20 --trace measured.json\n"
      "  offstage jitter measured.json --out jitter.yaml\n"
      "and in another run config: `disturbances: {seed: 1, jitter: {file: jitter.yaml}}`");
  return command;
}

void write(const report::KindQuantiles& jitter, const JitterOptions& options) {
  std::ofstream out(options.out);
  out << "# Time of a task beside its median over the steps, from " << options.trace << "\n";
  for (const auto& [kind, quantiles] : jitter) {
    out << fmt::format("{}: {{quantiles: [{:.4g}]}}\n", kind, fmt::join(quantiles, ", "));
  }
  out.close();
  if (!out) throw Error(ErrorCode::io, "can't be written", Where{options.out, {}, {}});
}

int run(const JitterOptions& options) {
  const auto jitter = report::jitter_of(report::read_chrome_trace(options.trace));
  if (!options.out.empty()) write(jitter, options);
  if (options.common.json) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& [kind, quantiles] : jitter) object[kind] = {{"quantiles", quantiles}};
    print_json(object);
    return kDone;
  }
  Table table({"kind", "least", "5 %", "median", "95 %", "most"});
  for (const auto& [kind, quantiles] : jitter) {
    const auto at = [&](std::size_t i) { return fmt::format("{:.3f}", quantiles[i]); };
    table.add({kind, at(0), at(1), at(10), at(19), at(20)});
  }
  print_text("Time of a task beside its median over the steps:\n\n" + table.text());
  return kDone;
}

}  // namespace

void add_jitter_command(CLI::App& app, Action& action) {
  add_command<JitterOptions>(app, action, describe, run);
}

}  // namespace offstage::cli
