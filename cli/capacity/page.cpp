#include "cli/capacity/page.h"

#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "cli/report_page.h"
#include "platform/format.h"
#include "scheduler/plan_file.h"

namespace offstage::cli {
namespace {

using platform::count_text;
using platform::to_text;
using report::Cell;
using report::ChartKind;
using report::ChartSection;
using report::Format;
using report::TableSection;
using scheduler::FitLimit;
using scheduler::Speed;

double number(std::int64_t value) { return static_cast<double>(value); }

double tokens_per_s(const SizedModel& model, std::int64_t batch, const Speed& speed) {
  return number(batch * model.workload.sequence_length) / speed.step.value;
}

std::string limit_text(const std::optional<FitLimit>& limit, const std::string& otherwise) {
  if (!limit) return otherwise;
  return fmt::format("{}: {}, short by {}", limit->pool, limit->line, to_text(limit->lacks));
}

ChartSection size_chart(const CapacityAnswer& capacity) {
  ChartSection chart{.title = "Model size against batch",
                     .text = "The largest batch that still fits.",
                     .kind = ChartKind::lines,
                     .x = {"parameters", Format::count, true},
                     .y = {"tokens in a step", Format::count, true},
                     .series = {{"largest batch", {}}},
                     .half = true};
  for (const FrontierModel& frontier : capacity.frontier) {
    if (frontier.largest.batch == 0) continue;
    const auto& workload = frontier.model.workload;
    chart.series[0].points.push_back({number(frontier.model.parameters),
                                      number(frontier.largest.batch * workload.sequence_length),
                                      workload.model.name});
  }
  return chart;
}

ChartSection speed_chart(const CapacityAnswer& capacity) {
  ChartSection chart{.title = "Speed against batch",
                     .kind = ChartKind::lines,
                     .x = {"sequences in a step", Format::count, true},
                     .y = {"tokens per second", Format::count, true},
                     .half = true};
  for (const FrontierModel& frontier : capacity.frontier) {
    report::Series series{fmt::format("{} ({})", frontier.model.workload.model.name,
                                      count_text(number(frontier.model.parameters))),
                          {}};
    for (const FrontierPoint& point : frontier.points) {
      if (!point.speed) continue;
      series.points.push_back({number(point.batch),
                               tokens_per_s(frontier.model, point.batch, *point.speed),
                               series.name});
    }
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

TableSection rows_table(const CapacityAnswer& capacity) {
  TableSection table{.title = "Largest model of each row",
                     .columns = {{"row"},
                                 {"largest that fits"},
                                 {"parameters", Format::count},
                                 {"layers"},
                                 {"hidden"},
                                 {"the next lacks"}}};
  for (const RowAnswer& row : capacity.rows) {
    const std::string end = limit_text(row.limit, "nothing: the row ends");
    if (!row.largest) {
      table.rows.push_back(
          {row.name, "none", Cell(), Cell(), Cell(), row.left_out.empty() ? end : row.left_out});
      continue;
    }
    const auto& model = row.largest->workload.model;
    table.rows.push_back({row.name, model.name, number(row.largest->parameters),
                          number(model.layers), number(model.hidden), end});
  }
  return table;
}

TableSection frontier_table(const CapacityAnswer& capacity) {
  TableSection table{.title = "Model, batch and speed",
                     .columns = {{"model"},
                                 {"parameters", Format::count},
                                 {"batch"},
                                 {"tokens/s", Format::count},
                                 {"step", Format::seconds},
                                 {"busiest"},
                                 {"its part of the step", Format::fraction, true},
                                 {"batch ends"}}};
  for (const FrontierModel& frontier : capacity.frontier) {
    for (const FrontierPoint& point : frontier.points) {
      std::vector<Cell> row{frontier.model.workload.model.name, number(frontier.model.parameters),
                            number(point.batch)};
      if (point.speed) {
        row.insert(row.end(), {tokens_per_s(frontier.model, point.batch, *point.speed),
                               point.speed->step.value, point.speed->bound.by,
                               point.speed->bound.seconds / point.speed->step});
      } else {
        row.insert(row.end(), {Cell(), Cell(), "no plan found", Cell()});
      }
      const bool last = &point == &frontier.points.back();
      row.emplace_back(last ? limit_text(frontier.largest.limit, "at the cap of tokens") : "");
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

TableSection variants_table(const CapacityAnswer& capacity) {
  TableSection table{.title = "What more would buy",
                     .text = fmt::format("Largest batch of {}, speed of {}.",
                                         capacity.asked.workload.model.name, capacity.compared),
                     .columns = {{"with"},
                                 {"largest model", Format::count},
                                 {"largest batch"},
                                 {"tokens/s", Format::count},
                                 {"note"}}};
  const auto add = [&](const Variant& variant) {
    table.rows.push_back(
        {variant.change, variant.largest ? Cell(number(variant.largest->parameters)) : Cell(),
         number(variant.largest_batch),
         variant.speed ? Cell(tokens_per_s(capacity.asked, variant.batch, *variant.speed)) : Cell(),
         variant.note});
  };
  add(capacity.as_it_is);
  for (const Variant& variant : capacity.variants) add(variant);
  return table;
}

report::Fact batch_fact(const CapacityAnswer& capacity) {
  const auto& largest = capacity.largest_batch;
  return {"largest batch of " + capacity.asked.workload.model.name,
          fmt::format("{} sequences", largest.batch),
          largest.limit ? "the next lacks " + limit_text(largest.limit, "") : ""};
}

}  // namespace

report::Page capacity_page(const CapacityAnswer& capacity, const scheduler::Profile& profile) {
  const auto& workload = capacity.asked.workload;
  report::Page page{.title = "Capacity of " + capacity.machine,
                    .subtitle = fmt::format("at {} sequences of {} tokens a step, without NVMe",
                                            workload.global_batch, workload.sequence_length)};
  if (!capacity.best_row) {
    page.facts = {{"largest model", "none fits", "", report::Tone::bad}, batch_fact(capacity)};
    page.footer = {program_version()};
    page.sections.emplace_back(rows_table(capacity));
    return page;
  }
  const RowAnswer& best = capacity.rows[*capacity.best_row];
  page.facts = {{"largest model", count_text(number(best.largest->parameters)) + " parameters",
                 best.largest->workload.model.name, report::Tone::good},
                {"ended by", best.limit ? best.limit->pool : "nothing",
                 limit_text(best.limit, "the row ends")},
                batch_fact(capacity)};
  page.sections.emplace_back(size_chart(capacity));
  page.sections.emplace_back(speed_chart(capacity));
  page.sections.emplace_back(rows_table(capacity));
  page.sections.emplace_back(frontier_table(capacity));
  page.sections.emplace_back(variants_table(capacity));
  report::Page largest = plan_page(capacity.plan->plan, &*capacity.prediction, profile);
  std::ranges::move(largest.sections, std::back_inserter(page.sections));
  page.footer = std::move(largest.footer);
  return page;
}

}  // namespace offstage::cli
