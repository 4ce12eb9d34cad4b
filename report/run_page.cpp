#include "report/run_page.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "platform/format.h"
#include "scheduler/ledger_groups.h"

namespace offstage::report {
namespace {

using platform::percent_text;
using platform::to_text;
using scheduler::EngineLoss;
using scheduler::LossKind;
using scheduler::Metrics;

double seconds(Nanoseconds time) { return static_cast<double>(time) * 1e-9; }

// The kinds of waiting that any GPU has, in the order of LossKind.
std::vector<LossKind> kinds_of(const std::vector<EngineLoss>& losses) {
  std::vector<LossKind> kinds;
  for (std::size_t kind = 0; kind < scheduler::kLossKinds; ++kind) {
    const bool any = std::ranges::any_of(losses, [kind](const EngineLoss& loss) {
      return loss.lost[kind].total().value > 1e-4 * loss.window.value;
    });
    if (any) kinds.push_back(static_cast<LossKind>(kind));
  }
  return kinds;
}

ChartSection step_chart(const std::vector<EngineLoss>& losses) {
  ChartSection chart{.title = "Where the step goes",
                     .text =
                         "Each GPU's part of one step in the steady state: at work, or waiting "
                         "and for what. A wait is shared out along the chain of what was waited "
                         "for.",
                     .kind = ChartKind::stacks,
                     .x = {"seconds of the step", Format::seconds},
                     .y = {"", Format::plain}};
  Series busy{"compute", {}};
  for (const EngineLoss& loss : losses) {
    chart.categories.push_back(loss.engine.substr(0, loss.engine.find('.')));
    busy.points.push_back({static_cast<double>(busy.points.size()), loss.busy.value, ""});
  }
  chart.series.push_back(busy);
  for (const LossKind kind : kinds_of(losses)) {
    Series series{exposed_name(kind), {}};
    for (const EngineLoss& loss : losses) {
      series.points.push_back({static_cast<double>(series.points.size()),
                               loss.lost[static_cast<std::size_t>(kind)].total().value, ""});
    }
    chart.series.push_back(series);
  }
  return chart;
}

TableSection step_table(const std::vector<EngineLoss>& losses) {
  TableSection table{.title = "Where the step goes, in seconds",
                     .columns = {{"engine"},
                                 {"step", Format::seconds},
                                 {"compute", Format::seconds},
                                 {"busy", Format::fraction, true}}};
  const auto kinds = kinds_of(losses);
  for (const LossKind kind : kinds) table.columns.push_back({exposed_name(kind), Format::seconds});
  for (const EngineLoss& loss : losses) {
    std::vector<Cell> row{loss.engine, loss.window.value, loss.busy.value, loss.busy / loss.window};
    for (const LossKind kind : kinds) {
      row.emplace_back(loss.lost[static_cast<std::size_t>(kind)].total().value);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Time on the chain by kind of task: each from when what it waited for was done, so that waiting
// which nothing explains shows too.
TableSection chain_table(const Timeline& timeline) {
  struct Sum {
    double count = 0.0, time = 0.0;
  };
  std::map<std::string, Sum> sums;
  double waiting = 0.0;
  Nanoseconds done = timeline.step_start;
  for (const std::uint32_t id : timeline.chain) {
    const TimelineTask& task = timeline.tasks[id];
    Sum& sum = sums[timeline.kinds[task.kind]];
    const Nanoseconds start = std::max(task.start, timeline.step_start);
    sum.count += 1.0;
    sum.time += seconds(task.end - start);
    waiting += seconds(std::max<Nanoseconds>(start - done, 0));
    done = task.end;
  }
  const double step = seconds(timeline.step_end - timeline.step_start);
  std::vector<std::pair<std::string, Sum>> order(sums.begin(), sums.end());
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [](const auto& entry) { return entry.second.time; });
  TableSection table{.title = "What the step waits for",
                     .text =
                         "The chain of tasks that ends the step, each of which waited for the "
                         "one before it: the timeline's critical path.",
                     .columns = {{"task"},
                                 {"tasks", Format::count},
                                 {"time", Format::seconds},
                                 {"part of the step", Format::fraction, true}},
                     .half = true};
  for (const auto& [name, sum] : order) {
    table.rows.push_back({name, sum.count, sum.time, step > 0.0 ? sum.time / step : 0.0});
  }
  if (waiting > 0.0) {
    table.rows.push_back({"order of work", std::monostate(), waiting, waiting / step});
  }
  return table;
}

TableSection engine_table(const Metrics& metrics) {
  TableSection table{.title = "Engines",
                     .columns = {{"engine"},
                                 {"busy in a step", Format::seconds},
                                 {"utilisation", Format::fraction, true}},
                     .half = true};
  for (const auto& engine : metrics.engines) {
    if (engine.busy.value == 0.0) continue;
    table.rows.push_back({engine.engine, engine.busy.value, engine.utilisation});
  }
  return table;
}

// Links of cores carry core-nanoseconds, which are no bytes.
TableSection link_table(const platform::Machine& machine, const Metrics& metrics) {
  TableSection table{.title = "Links",
                     .columns = {{"link"},
                                 {"carried in a step", Format::bytes},
                                 {"utilisation", Format::fraction, true}},
                     .half = true};
  std::vector<std::size_t> order;
  for (std::size_t link = 0; link < metrics.links.size(); ++link) {
    if (metrics.links[link].utilisation > 0.0) order.push_back(link);
  }
  std::ranges::stable_sort(order, std::ranges::greater(), [&metrics](std::size_t link) {
    return metrics.links[link].utilisation;
  });
  for (const std::size_t link : order) {
    const auto& use = metrics.links[link];
    const bool cores = machine.links[link].kind == platform::LinkKind::cores;
    table.rows.push_back({use.link, cores ? Cell() : Cell(use.bytes), use.utilisation});
  }
  return table;
}

// A pool may have several lines of one kind.
void add_part(Series& series, std::size_t pool, double part) {
  const auto x = static_cast<double>(pool);
  if (!series.points.empty() && series.points.back().x == x) {
    series.points.back().y += part;
  } else {
    series.points.push_back({x, part, ""});
  }
}

}  // namespace

std::string exposed_name(LossKind kind) {
  switch (kind) {
    case LossKind::order:
      return "idle";
    case LossKind::compute:
      return "waiting for another GPU";
    case LossKind::collective:
      return "collective";
    default:
      return "exposed " + std::string(to_string(kind));
  }
}

std::vector<Fact> speed_facts(const Metrics& metrics) {
  std::vector<Fact> facts{
      {"step", to_text(metrics.step), ""},
      {"tokens per second", platform::scaled_text(metrics.tokens_per_s, ""), ""}};
  if (metrics.mfu > 0.0) {
    facts.push_back({"MFU", percent_text(metrics.mfu), "of the GPUs' peak"});
  }
  facts.push_back({"bound", to_text(metrics.bound.seconds), "set by " + metrics.bound.by});
  facts.push_back({"efficiency", percent_text(metrics.efficiency), "of the bound's pace"});
  return facts;
}

std::vector<Section> run_sections(const platform::Machine& machine, const Metrics& metrics,
                                  const std::vector<EngineLoss>& losses, const Timeline& timeline) {
  std::vector<Section> sections;
  if (!losses.empty()) {
    sections.emplace_back(step_chart(losses));
    sections.emplace_back(step_table(losses));
  }
  sections.emplace_back(chain_table(timeline));
  sections.emplace_back(engine_table(metrics));
  sections.emplace_back(link_table(machine, metrics));
  return sections;
}

std::vector<Section> ledger_sections(const scheduler::Ledger& ledger) {
  const auto groups = scheduler::group_pools(ledger);
  ChartSection chart{.title = "Memory",
                     .text = "What fills each pool, as parts of its capacity.",
                     .kind = ChartKind::stacks,
                     .x = {"part of the capacity", Format::fraction},
                     .y = {"", Format::plain}};
  std::map<std::string, std::size_t> known;  // series by name
  std::vector<Section> tables;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto& [names, pool, lines] = groups[i];
    const std::string name = scheduler::join_names(names);
    chart.categories.push_back(name);
    const auto capacity = static_cast<double>(pool.capacity.value);
    TableSection table{
        .title = "Memory of " + name + (names.size() > 1 ? ", each" : ""),
        .text = fmt::format("{} of {} in use at most: {}.", to_text(pool.total()),
                            to_text(pool.capacity),
                            pool.fits() ? to_text(pool.capacity - pool.total()) + " free"
                                        : "short by " + to_text(pool.total() - pool.capacity)),
        .columns = {{"what"},
                    {"size", Format::bytes},
                    {"part of the pool", Format::fraction, true},
                    {"how"},
                    {"moved by"}}};
    for (const auto& line : lines) {
      const auto bytes = static_cast<double>(line.bytes.value);
      table.rows.push_back({line.what, bytes, bytes / capacity, line.how, line.knob});
      if (line.bytes.value == 0) continue;
      // One colour for "state of gpu0 to gpu3" and "state of gpu4 to gpu7".
      const std::string kind = line.what.substr(0, line.what.find(" of gpu"));
      const auto [entry, is_new] = known.emplace(kind, chart.series.size());
      if (is_new) chart.series.push_back({kind, {}});
      add_part(chart.series[entry->second], i, bytes / capacity);
    }
    tables.emplace_back(std::move(table));
  }
  std::vector<Section> sections{std::move(chart)};
  std::ranges::move(tables, std::back_inserter(sections));
  return sections;
}

}  // namespace offstage::report
