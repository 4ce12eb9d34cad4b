#include "cli/validate/page.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/report_page.h"
#include "platform/format.h"

namespace offstage::cli {
namespace {

using calibration::Compared;
using calibration::RowResult;
using calibration::SetResult;
using report::Cell;
using report::ChartKind;
using report::ChartSection;
using report::Format;
using report::TableSection;

double number(std::size_t value) { return static_cast<double>(value); }

// Predicted against measured, a series for each set; on the guide both are equal.
ChartSection scatter(const ValidationAnswer& answer, std::optional<Compared> RowResult::*part,
                     const std::string& title, Format format) {
  ChartSection chart{.title = title,
                     .text = "On the dashed line both are equal.",
                     .kind = ChartKind::scatter,
                     .x = {"measured", format, true},
                     .y = {"predicted", format, true},
                     .half = true};
  double least = 0.0, most = 0.0;
  for (const SetResult& set : answer.validation.sets) {
    report::Series series{set.name, {}};
    for (const RowResult& result : answer.validation.rows) {
      const auto& row = answer.rows[result.row];
      const auto& compared = result.*part;
      if (row.set != set.name || !compared) continue;
      series.points.push_back({compared->measured, compared->predicted, row.id});
      const auto [low, high] = std::minmax(compared->measured, compared->predicted);
      least = least == 0.0 ? low : std::min(least, low);
      most = std::max(most, high);
    }
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  if (most > 0.0) {
    chart.series.push_back({"equal", {{least, least, ""}, {most, most, ""}}, true});
  }
  return chart;
}

TableSection sets_table(const ValidationAnswer& answer) {
  TableSection table{.title = "Sets",
                     .text = "Errors of the step time, (predicted - measured) / measured.",
                     .columns = {{"set"},
                                 {"rows"},
                                 {"answered"},
                                 {"steps"},
                                 {"mean error", Format::fraction},
                                 {"median error", Format::fraction, true},
                                 {"nine of ten below", Format::fraction},
                                 {"bias", Format::fraction},
                                 {"GPU memory, mean error", Format::fraction},
                                 {"right order of pairs", Format::fraction},
                                 {"in the interval", Format::fraction}}};
  const auto part = [](std::size_t some, std::size_t all) {
    return all == 0 ? Cell() : Cell(number(some) / number(all));
  };
  for (const SetResult& set : answer.validation.sets) {
    std::vector<Cell> row{set.name, number(set.rows), number(set.answered),
                          number(set.steps.count)};
    if (set.steps.count > 0) {
      row.insert(row.end(), {set.steps.mape, set.steps.median, set.steps.p90, set.steps.bias});
    } else {
      row.resize(row.size() + 4);
    }
    row.push_back(set.gpu_memory.count > 0 ? Cell(set.gpu_memory.mape) : Cell());
    row.push_back(part(set.ranking.right, set.ranking.pairs));
    row.push_back(part(set.coverage.inside, set.coverage.count));
    table.rows.push_back(std::move(row));
  }
  return table;
}

TableSection rows_table(const ValidationAnswer& answer) {
  TableSection table{.title = "Rows",
                     .columns = {{"set"},
                                 {"row"},
                                 {"machine"},
                                 {"model"},
                                 {"system"},
                                 {"measured", Format::seconds},
                                 {"predicted", Format::seconds},
                                 {"error", Format::fraction}}};
  for (const RowResult& result : answer.validation.rows) {
    const auto& row = answer.rows[result.row];
    if (!result.step) continue;
    table.rows.push_back(
        {row.set, row.id, fmt::format("{} x {}", row.machine.gpus, row.machine.gpu), row.model.name,
         row.system, result.step->measured, result.step->predicted, result.step->error()});
  }
  return table;
}

TableSection refused_table(const ValidationAnswer& answer) {
  TableSection table{.title = "Refused rows", .columns = {{"set"}, {"rows"}, {"reason"}}};
  for (const SetResult& set : answer.validation.sets) {
    for (const auto& [reason, rows] : set.refused) {
      table.rows.push_back({set.name, number(rows), reason});
    }
  }
  return table;
}

}  // namespace

report::Page validation_page(const ValidationAnswer& answer) {
  const auto& results = answer.validation.rows;
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < results.size(); ++i) all.push_back(i);
  const auto steps = calibration::summarise_errors(results, all, &RowResult::step);
  const auto memory = calibration::summarise_errors(results, all, &RowResult::gpu_peak);
  const auto answered =
      std::ranges::count_if(results, [](const RowResult& row) { return row.answer.has_value(); });
  report::Page page{
      .title = "Predictions against published measurements",
      .subtitle = fmt::format("{} rows in {} sets, {} of them answered", results.size(),
                              answer.validation.sets.size(), answered),
      .footer = {program_version()}};
  const auto add_fact = [&page](const std::string& name, const calibration::ErrorSummary& errors) {
    if (errors.count == 0) return;
    page.facts.push_back({name, platform::percent_text(errors.median),
                          fmt::format("median error of {} rows; nine of ten below {}", errors.count,
                                      platform::percent_text(errors.p90))});
  };
  add_fact("step time", steps);
  add_fact("GPU memory", memory);
  if (steps.count > 0) {
    page.sections.emplace_back(scatter(answer, &RowResult::step, "Step time", Format::seconds));
  }
  if (memory.count > 0) {
    page.sections.emplace_back(scatter(answer, &RowResult::gpu_peak, "GPU memory", Format::bytes));
  }
  page.sections.emplace_back(sets_table(answer));
  page.sections.emplace_back(rows_table(answer));
  TableSection refused = refused_table(answer);
  if (!refused.rows.empty()) page.sections.emplace_back(std::move(refused));
  return page;
}

}  // namespace offstage::cli
