#include "cli/command.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calibration/reference_mapping.h"
#include "cli/data_folder.h"
#include "cli/output.h"
#include "cli/report_page.h"
#include "cli/validate/page.h"
#include "cli/validate/report.h"
#include "platform/error.h"
#include "sim/process_pool.h"

// offstage validate: predictions against what others measured.
namespace offstage::cli {
namespace {

using calibration::ReferenceRow;

struct ValidateOptions {
  CommonOptions common;
  std::vector<std::string> references;
  std::vector<std::string> sets;
  std::string out;
  std::string report;
  std::optional<int> workers;
};

constexpr int kMostWorkers = 1024;

CLI::App* describe(CLI::App& app, ValidateOptions& options) {
  CLI::App* command =
      app.add_subcommand("validate", "Hold predictions against published measurements");
  command->add_option("--reference", options.references,
                      "Measurements instead of those that ship: a file like "
                      "calibration/reference/training.yaml or vtrain.csv; may be given again");
  command->add_option("--set", options.sets, "Only the rows of this set; may be given again");
  command->add_option("--out", options.out, "Write rows.csv, breakdown.csv, ... to this folder");
  add_report_option(*command, options.report);
  command->add_option("--workers", options.workers, "Simulations at a time; as many as cores")
      ->check(CLI::Range(1, kMostWorkers));
  command->footer(
      "Each row is asked of the machine, the system and the software profile that stand for it\n"
      "(calibration/reference/mapping.yaml), or refused with a reason. Errors are\n"
      "(predicted - measured) / measured.\n\n"
      "Examples:\n"
      "  offstage validate\n"
      "  offstage validate --set mosaic --json\n"
      "  offstage validate --reference mine.yaml --out validated");
  return command;
}

std::vector<ReferenceRow> load_rows(const ValidateOptions& options,
                                    const std::filesystem::path& folder) {
  std::vector<std::string> files = options.references;
  if (files.empty()) files = {folder / "training.yaml", folder / "vtrain.csv"};
  std::vector<ReferenceRow> rows;
  for (const std::string& file : files) {
    auto more = calibration::load_reference(file);
    rows.insert(rows.end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
  }
  if (options.sets.empty()) return rows;
  std::vector<std::string> names;
  for (const ReferenceRow& row : rows) {
    if (std::ranges::find(names, row.set) == names.end()) names.push_back(row.set);
  }
  for (const std::string& set : options.sets) {
    if (std::ranges::find(names, set) != names.end()) continue;
    throw Error(ErrorCode::bad_usage,
                fmt::format("--set {}: no such set; there are {}", set, fmt::join(names, ", ")));
  }
  std::erase_if(rows, [&](const ReferenceRow& row) {
    return std::ranges::find(options.sets, row.set) == options.sets.end();
  });
  return rows;
}

int run(const ValidateOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  if (!options.report.empty()) report::require_writable(options.report);
  const auto data = find_data_folder(options.common.data);
  const auto folder = data / "calibration" / "reference";
  ValidationAnswer answer;
  answer.rows = load_rows(options, folder);
  const calibration::ReferenceMapping mapping((folder / "mapping.yaml").string());
  answer.cases = make_reference_cases(answer.rows, mapping, data_directories(data));
  answer.answers =
      predict(answer.rows, answer.cases, options.workers.value_or(sim::default_workers()));
  answer.validation = validate(answer.rows, answer.cases, answer.answers);
  answer.wall = {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  if (!options.out.empty()) write_validation(answer, options.out);
  if (!options.report.empty()) report::write_page(validation_page(answer), options.report);
  if (options.common.json) {
    print_json(validation_json(answer));
  } else {
    print_text(validation_text(answer));
  }
  return kDone;
}

}  // namespace

void add_validate_command(CLI::App& app, Action& action) {
  add_command<ValidateOptions>(app, action, describe, run);
}

}  // namespace offstage::cli
