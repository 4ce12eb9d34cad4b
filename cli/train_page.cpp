#include "cli/train_page.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/report_page.h"
#include "platform/error.h"
#include "platform/format.h"
#include "report/trace_reader.h"
#include "scheduler/cost_model.h"
#include "scheduler/step_graph.h"

namespace offstage::cli {
namespace {

using nlohmann::json;
using platform::to_text;
using report::Format;

json read_summary(const std::string& file) {
  std::ifstream in(file);
  const json summary = json::parse(in, nullptr, false);
  if (!summary.is_object()) {
    throw Error(ErrorCode::io, fmt::format("{}: offstage-exec left no summary there", file));
  }
  return summary;
}

// The steps of the trace again as a graph, so that all is known of its tasks. Empty where the file
// holds other tasks than the plan's steps.
std::optional<Simulated> rebuild(const TrainedRun& run, const report::TraceContents& contents) {
  std::set<std::uint32_t> steps;
  for (const auto& task : contents.tasks) steps.insert(task.step);
  Simulated measured;
  measured.graph = scheduler::make_step_graph(run.plan, static_cast<std::uint32_t>(steps.size()));
  if (measured.graph.size() != contents.tasks.size()) return std::nullopt;
  for (scheduler::TaskId id = 0; id < contents.tasks.size(); ++id) {
    const auto& task = contents.tasks[id];
    if (task.id != id || task.kind != to_string(measured.graph.tasks[id].kind)) return std::nullopt;
    measured.trace.tasks.push_back({task.start, task.start + task.duration});
  }
  measured.costs = scheduler::make_costs(run.plan, run.profile, measured.graph);
  measured.metrics = scheduler::measure(run.plan, measured.graph, measured.costs, measured.trace);
  return measured;
}

report::ChartSection loss_chart(const json& summary) {
  report::ChartSection chart{.title = "Loss",
                             .text =
                                 "Nats a token; the dashed line is what knowing only the "
                                 "tokens' frequencies would give.",
                             .kind = report::ChartKind::lines,
                             .x = {"step", Format::count},
                             .y = {"loss", Format::plain},
                             .series = {{"loss", {}}}};
  const auto first = summary.value("resumed_from", 0.0) + 1.0;
  const auto& losses = summary["loss"];
  // A long training has more steps than a chart has pixels.
  constexpr std::size_t kMostPoints = 1000;
  const std::size_t stride = losses.size() / kMostPoints + 1;
  for (std::size_t i = 0; i < losses.size(); i += stride) {
    if (!losses[i].is_number()) continue;
    chart.series[0].points.push_back({first + static_cast<double>(i), losses[i].get<double>(), ""});
  }
  if (summary.contains("validation")) {
    report::Series validation{"validation", {}};
    for (const auto& entry : summary["validation"]) {
      if (!entry["loss"].is_number()) continue;
      validation.points.push_back({entry["step"].get<double>(), entry["loss"].get<double>(), ""});
    }
    chart.series.push_back(std::move(validation));
  }
  const double end = first + static_cast<double>(losses.size()) - 1.0;
  const double entropy = summary.value("unigram_entropy", 0.0);
  if (entropy > 0.0) {
    chart.series.push_back({"frequencies alone", {{first, entropy, ""}, {end, entropy, ""}}, true});
  }
  return chart;
}

report::TableSection memory_table(const json& summary) {
  report::TableSection table{.title = "Memory measured against planned",
                             .columns = {{"pool"},
                                         {"peak", Format::bytes},
                                         {"planned", Format::bytes},
                                         {"part of what was planned", Format::fraction, true}}};
  for (const auto& pool : summary["memory"]) {
    const double peak = pool["peak_bytes"].get<double>();
    const double planned = pool["planned_bytes"].get<double>();
    table.rows.push_back({pool["pool"].get<std::string>(), peak, planned,
                          planned > 0.0 ? report::Cell(peak / planned) : report::Cell()});
  }
  return table;
}

}  // namespace

report::Page train_page(const TrainedRun& run) {
  const json summary = read_summary(run.summary_file);
  std::ifstream has_trace(run.trace_file);
  std::optional<Simulated> measured;
  std::optional<report::TraceContents> contents;
  if (has_trace.peek() != std::ifstream::traits_type::eof()) {
    contents = report::read_chrome_trace(run.trace_file);
    measured = rebuild(run, *contents);
  }
  report::Page page =
      plan_page(run.plan, measured ? &*measured : nullptr, run.profile, Backend::measured);
  page.title = "Training of " + page.title;
  if (contents && !measured) {
    page.sections.insert(
        page.sections.begin(),
        report::TimelineSection{"Timeline", "", {report::make_timeline("measured", *contents)}});
  }
  const auto step = std::ranges::find(page.facts, "step", &report::Fact::name);
  if (step != page.facts.end() && summary.contains("step_s_median")) {
    const platform::Seconds median{summary["step_s_median"].get<double>()};
    step->value = to_text(median);
    step->note = fmt::format("median; {} predicted: off by {:+.1f} %", to_text(run.predicted_step),
                             100.0 * (run.predicted_step / median - 1.0));
  }
  const auto& losses = summary["loss"];
  if (!losses.empty() && losses.back().is_number()) {
    page.facts.insert(page.facts.begin(),
                      {"loss", fmt::format("{:.4f}", losses.back().get<double>()),
                       fmt::format("after {} steps, nats a token",
                                   summary.value("steps_done", std::int64_t{0}))});
    page.sections.insert(page.sections.begin(), loss_chart(summary));
  }
  page.sections.emplace_back(memory_table(summary));
  return page;
}

}  // namespace offstage::cli
