#include "cli/report_page.h"

#include <algorithm>
#include <iterator>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/assumptions.h"
#include "cli/system_report.h"
#include "cli/version.h"
#include "platform/format.h"
#include "report/run_page.h"
#include "scheduler/explain.h"
#include "scheduler/plan_file.h"

namespace offstage::cli {
namespace {

using nlohmann::json;
using platform::to_text;
using report::Format;
using report::Page;
using report::Section;
using scheduler::systems::SystemPlan;

// What there is of a run, whoever planned it.
struct RunParts {
  const scheduler::TaskGraph& graph;
  const std::vector<scheduler::TaskCost>& costs;
  const scheduler::Trace& trace;
  const scheduler::Metrics& metrics;
  Backend backend = Backend::simulated;
};

void append(std::vector<Section>& sections, std::vector<Section> more) {
  std::ranges::move(more, std::back_inserter(sections));
}

report::Fact fit_fact(const scheduler::Ledger& memory) {
  const auto worst = memory.worst();
  if (!worst) return {"memory", "fits", "", report::Tone::good};
  const auto& pool = memory.pools[*worst];
  return {"memory", "does not fit",
          fmt::format("{} is short by {}", pool.name, to_text(pool.total() - pool.capacity)),
          report::Tone::bad};
}

report::TableSection knob_table(const json& strategy) {
  report::TableSection table{.title = "Strategy", .columns = {{"knob"}, {"value"}}, .half = true};
  for (const auto& [knob, value] : strategy.items()) {
    table.rows.push_back({knob, value.is_string() ? value.get<std::string>() : value.dump()});
  }
  return table;
}

void add_run(Page& page, const RunParts& run, const platform::Machine& machine,
             const scheduler::Profile& profile) {
  for (auto& fact : report::speed_facts(run.metrics)) page.facts.push_back(std::move(fact));
  const bool simulated = run.backend == Backend::simulated;
  if (const auto& range = profile.step_range; range && simulated) {
    const auto step = std::ranges::find(page.facts, "step", &report::Fact::name);
    step->note = fmt::format("nine of ten within {} to {}", to_text(run.metrics.step * range->low),
                             to_text(run.metrics.step * range->high));
  }
  const report::TraceWindow window{
      .graph = run.graph, .trace = run.trace, .costs = run.costs, .first_step = 0, .offset = {}};
  report::TimelineSection section{
      .title = "Timeline",
      .text = fmt::format("{} tasks of {} step{} on {} engines.", run.graph.size(), run.graph.steps,
                          run.graph.steps == 1 ? "" : "s", run.graph.engines.size()),
      .timelines = {report::make_timeline(simulated ? "simulated" : "measured", window, machine,
                                          run.metrics.memory)}};
  const auto losses = scheduler::lost_compute_time(run.graph, run.trace);
  auto sections = report::run_sections(machine, run.metrics, losses, section.timelines.front());
  page.sections.emplace_back(std::move(section));
  append(page.sections, std::move(sections));
}

void add_plan(Page& page, const scheduler::Ledger& memory, const json& strategy,
              const std::vector<std::string>& reasons) {
  append(page.sections, report::ledger_sections(memory));
  page.sections.emplace_back(knob_table(strategy));
  if (!reasons.empty()) {
    page.sections.emplace_back(report::ListSection{"Reasons", "", reasons, true});
  }
}

void add_assumptions(Page& page, const platform::Machine& machine,
                     const scheduler::Profile& profile) {
  const auto assumed = assumed_numbers(machine, profile);
  if (assumed.empty()) return;
  page.sections.emplace_back(report::ListSection{
      "Assumptions", "Numbers behind this prediction that nobody measured.", assumed, false});
}

report::TableSection bounds_table(const scheduler::Plan& plan, const Simulated& run) {
  report::TableSection table{
      .title = "Bounds",
      .text =
          "How long each kind of resource would need by itself: no step is shorter than the "
          "longest.",
      .columns = {{"resource"},
                  {"busiest"},
                  {"time", Format::seconds},
                  {"part of the step", Format::fraction, true}},
      .half = true};
  for (const auto& bound : scheduler::resource_bounds(plan, run.graph, run.costs)) {
    table.rows.push_back(
        {bound.resource, bound.busiest, bound.seconds.value, bound.seconds / run.metrics.step});
  }
  return table;
}

std::string sizes(const workloads::Workload& workload, std::int64_t parameters, std::int64_t gpus) {
  return fmt::format(
      "{} parameters, {} blocks; {} GPU{}; a step of {} sequences of {} tokens in {}",
      platform::count_text(static_cast<double>(parameters)), workload.model.layers, gpus,
      gpus == 1 ? "" : "s", workload.global_batch, workload.sequence_length,
      workload.precision == platform::Precision::bf16 ? "bf16" : "f32");
}

}  // namespace

void add_report_option(CLI::App& command, std::string& file) {
  command.add_option("--report", file, "Write an HTML page that opens in any browser, offline");
}

std::string program_version() { return "offstage " + version(); }

Page plan_page(const scheduler::Plan& plan, const Simulated* run, const scheduler::Profile& profile,
               Backend backend) {
  Page page{.title = fmt::format("{} on {}", plan.workload.model.name, plan.machine.name),
            .subtitle = sizes(plan.workload, plan.parameters(), plan.gpus()),
            .facts = {fit_fact(plan.memory)},
            .footer = {program_version(), "plan " + scheduler::plan_hash(plan),
                       "software profile " + profile.name}};
  if (run != nullptr) {
    add_run(page, {run->graph, run->costs, run->trace, run->metrics, backend}, plan.machine,
            profile);
    page.sections.emplace_back(bounds_table(plan, *run));
  }
  add_plan(page, plan.memory, scheduler::plan_to_json(plan)["strategy"], plan.reasons);
  add_assumptions(page, plan.machine, profile);
  return page;
}

Page system_page(const SystemPlan& plan, const SimulatedSystem* run,
                 const scheduler::Profile& profile) {
  Page page{.title = fmt::format("{}: {} on {}", to_string(plan.strategy.system),
                                 plan.workload.model.name, plan.machine.name),
            .subtitle = sizes(plan.workload, plan.parameters(), plan.gpus()),
            .facts = {fit_fact(plan.memory)},
            .footer = {program_version(), "software profile " + profile.name}};
  if (run != nullptr) {
    add_run(page, {run->step.graph, run->step.costs, run->trace, run->metrics, Backend::simulated},
            plan.machine, profile);
  }
  add_plan(page, plan.memory, system_strategy_json(plan.strategy), {});
  add_assumptions(page, plan.machine, profile);
  return page;
}

}  // namespace offstage::cli
