#include "cli/profile_fitting.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calibration/fit_parameters.h"
#include "calibration/profile_fit.h"
#include "calibration/reference_cases.h"
#include "calibration/reference_groups.h"
#include "calibration/reference_mapping.h"
#include "calibration/reference_rows.h"
#include "cli/data_folder.h"
#include "cli/output.h"
#include "platform/error.h"

namespace offstage::cli {
namespace {

using calibration::FitCase;
using calibration::FitParameter;
using calibration::FittedValue;
using calibration::HeldOut;
using calibration::ProfileFit;
using calibration::ReferenceCases;
using calibration::ReferenceRow;

bool wanted(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::ranges::find(names, name) != names.end();
}

std::vector<ReferenceRow> rows_with_steps(const FitOptions& options,
                                          const std::filesystem::path& folder) {
  std::vector<std::string> files = options.references;
  if (files.empty()) files = {folder / "training.yaml", folder / "vtrain.csv"};
  std::vector<ReferenceRow> rows;
  for (const std::string& file : files) {
    for (ReferenceRow& row : calibration::load_reference(file)) {
      if (row.measured.step && wanted(options.sets, row.set)) rows.push_back(std::move(row));
    }
  }
  return rows;
}

// Every so many-th of a group's rows.
std::vector<FitCase> thinned(const std::vector<FitCase>& cases, int rows_per_group) {
  if (rows_per_group <= 0) return cases;
  std::map<std::string, std::vector<const FitCase*>> groups;
  for (const FitCase& row : cases) groups[row.group].push_back(&row);
  const auto most = static_cast<std::size_t>(rows_per_group);
  std::vector<FitCase> kept;
  for (const auto& [group, rows] : groups) {
    const std::size_t count = std::min(most, rows.size());
    for (std::size_t i = 0; i < count; ++i) kept.push_back(*rows[i * rows.size() / count]);
  }
  return kept;
}

std::vector<FitCase> fit_cases(const std::vector<ReferenceRow>& rows, const ReferenceCases& cases,
                               const FitOptions& options) {
  std::vector<FitCase> result;
  for (const auto& question : cases.cases) {
    const ReferenceRow& row = rows[question.row];
    const auto& machine = cases.machines[question.machine];
    if (question.attempts.size() != 1 || !wanted(options.machines, machine.name)) continue;
    const auto& attempt = question.attempts.front();
    result.push_back({&machine, attempt.workload, attempt.strategy, *row.measured.step,
                      fmt::format("{} {}", row.set, group_of(row))});
  }
  result = thinned(result, options.rows_per_group);
  const bool several = std::ranges::any_of(
      result, [&](const FitCase& row) { return row.group != result.front().group; });
  if (!several) {
    throw Error(ErrorCode::bad_usage,
                fmt::format("{} rows with a step are left, of less than two models: a fit leaves "
                            "one out at a time; name other sets, files or machines",
                            result.size()));
  }
  return result;
}

std::string described(const FitOptions& options, const FittedValue& value, std::size_t cases) {
  const auto list = [](const std::vector<std::string>& names, const char* none) {
    return names.empty() ? std::string(none) : fmt::format("{}", fmt::join(names, ", "));
  };
  return fmt::format(
      "fitted to {} published steps (sets: {}; machines: {}), {:.4g} to {:.4g} when one model is "
      "left out: offstage calibrate --fit",
      cases, list(options.sets, "all"), list(options.machines, "all"), value.least, value.most);
}

nlohmann::json fit_json(const ProfileFit& fit, std::size_t cases) {
  nlohmann::json values = nlohmann::json::array(), groups = nlohmann::json::array();
  for (const FittedValue& value : fit.values) {
    values.push_back({{"name", value.parameter.name},
                      {"value", value.value},
                      {"least", value.least},
                      {"most", value.most},
                      {"low", value.parameter.low},
                      {"high", value.parameter.high}});
  }
  for (const HeldOut& group : fit.groups) {
    groups.push_back({{"group", group.group},
                      {"rows", group.cases},
                      {"mape", group.mape},
                      {"worst", group.worst}});
  }
  return {{"profile", fit.profile.name},
          {"rows", cases},
          {"mape", fit.mape},
          {"held_out_mape", fit.held_out_mape},
          {"values", values},
          {"groups", groups},
          {"range", {{"low", fit.range_low}, {"high", fit.range_high}}}};
}

std::string fit_text(const ProfileFit& fit, std::size_t cases) {
  std::string text = fmt::format("{}, {} steps\n", fit.profile.name, cases);
  for (const FittedValue& value : fit.values) {
    text += fmt::format("  {:<28} {:>10.4g}   {:.4g} to {:.4g} when one model is left out\n",
                        value.parameter.name, value.value, value.least, value.most);
  }
  for (const HeldOut& group : fit.groups) {
    text += fmt::format("  left out {:<22} {:>4} steps   mean error {:>5.1f} %, worst {:+.1f} %\n",
                        group.group, group.cases, 100 * group.mape, 100 * group.worst);
  }
  return text + fmt::format(
                    "mean error: {:.2f} % of the steps fitted to, {:.2f} % left out\n"
                    "nine of ten steps left out: {:.3f} to {:.3f} times the predicted one\n",
                    100 * fit.mape, 100 * fit.held_out_mape, fit.range_low, fit.range_high);
}

}  // namespace

int run_fit(const FitOptions& options) {
  const auto data = find_data_folder(options.common.data);
  const auto directories = data_directories(data);
  const auto folder = data / "calibration" / "reference";
  std::vector<FitParameter> free;
  for (const std::string& name : options.free) free.push_back(calibration::fit_parameter(name));
  const auto start = scheduler::load_profile(options.profile, directories.profiles);
  const auto rows = rows_with_steps(options, folder);
  const calibration::ReferenceMapping mapping((folder / "mapping.yaml").string());
  const ReferenceCases questions = make_reference_cases(rows, mapping, directories);
  const std::vector<FitCase> cases = fit_cases(rows, questions, options);
  ProfileFit fit = fit_profile(cases, start, free);
  for (const FittedValue& value : fit.values) {
    calibration::set_fitted_source(fit.profile, value.parameter.name,
                                   described(options, value, cases.size()));
  }
  fit.profile.step_range = scheduler::StepRange{
      .low = fit.range_low,
      .high = fit.range_high,
      .source = fmt::format("of {} steps, each by a fit that left out its model: offstage "
                            "calibrate --fit",
                            cases.size()),
      .confidence = platform::Confidence::medium};
  const auto file = std::filesystem::path(options.out) / (fit.profile.name + ".yaml");
  write_profile(fit.profile, file.string());
  if (options.common.json) {
    print_json(fit_json(fit, cases.size()));
  } else {
    print_text(fit_text(fit, cases.size()));
  }
  return kDone;
}

}  // namespace offstage::cli
