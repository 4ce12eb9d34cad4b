#include "cli/compare_page.h"

#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "cli/report_page.h"
#include "platform/format.h"

namespace offstage::cli {
namespace {

using platform::percent_text;
using platform::to_text;
using report::Format;
using report::TraceComparison;
using report::TraceContents;

std::string name_of(const char* letter, const TraceContents& trace) {
  return fmt::format("{}: {} ({})", letter, std::filesystem::path(trace.file).filename().string(),
                     trace.backend);
}

double signed_error(platform::Seconds a, platform::Seconds b, double error) {
  return a < b ? -error : error;
}

report::ChartSection kinds_chart(const TraceComparison& comparison) {
  report::ChartSection chart{.title = "Work by kind",
                             .text = "Seconds of one step's tasks, all engines together.",
                             .kind = report::ChartKind::bars,
                             .x = {"", Format::plain},
                             .y = {"seconds", Format::seconds},
                             .series = {{"A", {}}, {"B", {}}},
                             .half = true};
  for (const auto& kind : comparison.by_kind) {
    const auto x = static_cast<double>(chart.categories.size());
    chart.categories.push_back(kind.kind);
    chart.series[0].points.push_back({x, kind.a.value, ""});
    chart.series[1].points.push_back({x, kind.b.value, ""});
  }
  return chart;
}

report::TableSection kinds_table(const TraceComparison& comparison) {
  report::TableSection table{.title = "Differences",
                             .columns = {{"work of one step"},
                                         {"tasks", Format::count},
                                         {"A", Format::seconds},
                                         {"B", Format::seconds},
                                         {"A against B", Format::fraction}},
                             .half = true};
  for (const auto& kind : comparison.by_kind) {
    table.rows.push_back({kind.kind, static_cast<double>(kind.tasks), kind.a.value, kind.b.value,
                          signed_error(kind.a, kind.b, kind.error)});
  }
  table.rows.push_back({"step time", std::monostate(), comparison.step_a.value,
                        comparison.step_b.value,
                        signed_error(comparison.step_a, comparison.step_b, comparison.step_error)});
  if (comparison.worst) {
    table.text = fmt::format("Largest difference of one task: {}, {} in A and {} in B.",
                             comparison.worst->name, to_text(comparison.worst->a),
                             to_text(comparison.worst->b));
  }
  return table;
}

}  // namespace

report::Page compare_page(const TraceComparison& comparison, const TraceContents& a,
                          const TraceContents& b) {
  const bool slower = !(comparison.step_a < comparison.step_b);
  report::Page page{
      .title = "Two runs side by side",
      .subtitle = name_of("A", a) + "; " + name_of("B", b),
      .facts = {{"step of A", to_text(comparison.step_a), a.backend},
                {"step of B", to_text(comparison.step_b), b.backend},
                {"A against B", (slower ? "+" : "-") + percent_text(comparison.step_error), ""}},
      .footer = {program_version()}};
  if (a.plan_hash == b.plan_hash) {
    page.footer.push_back("plan " + a.plan_hash);
  } else {
    page.facts.push_back(
        {"plans", "differ", a.plan_hash + " and " + b.plan_hash, report::Tone::bad});
  }
  if (comparison.only_in_a + comparison.only_in_b > 0) {
    page.facts.push_back({"left out",
                          fmt::format("{}", comparison.only_in_a + comparison.only_in_b),
                          "tasks of a step that are in one trace only"});
  }
  page.sections.emplace_back(report::TimelineSection{
      .title = "Timelines",
      .text = "Both begin with the step that stands for a long run, at 0 s.",
      .timelines = {report::make_timeline(name_of("A", a), a),
                    report::make_timeline(name_of("B", b), b)}});
  page.sections.emplace_back(kinds_chart(comparison));
  page.sections.emplace_back(kinds_table(comparison));
  return page;
}

}  // namespace offstage::cli
