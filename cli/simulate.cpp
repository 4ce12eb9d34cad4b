#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cli/assumptions.h"
#include "cli/command.h"
#include "cli/data_folder.h"
#include "cli/lost_gpu.h"
#include "cli/metrics_report.h"
#include "cli/output.h"
#include "cli/plan_report.h"
#include "cli/planning.h"
#include "cli/report_page.h"
#include "cli/step_interval.h"
#include "cli/system_planning.h"
#include "cli/system_report.h"
#include "platform/error.h"
#include "platform/format.h"
#include "report/chrome_trace.h"
#include "scheduler/plan_file.h"
#include "scheduler/policy.h"
#include "scheduler/reference_schedule.h"
#include "sim/evaluate.h"

// offstage simulate: runs a plan on the simulator and says how long a step takes and why.
namespace offstage::cli {
namespace {

using nlohmann::json;
using platform::to_text;
using scheduler::Plan;

struct SimulateOptions {
  CommonOptions common;
  std::string file;
  std::uint32_t steps = sim::kSimulatedSteps;
  std::string trace;
  std::string report;
  std::string policy;
  std::optional<std::int64_t> reference;
};

// Task ids and steps are 32-bit, and every step of a large model is tens of thousands of tasks.
constexpr std::uint32_t kMostSteps = 10'000;

CLI::App* describe(CLI::App& app, SimulateOptions& options) {
  CLI::App* command = app.add_subcommand("simulate", "Run a plan on the simulator");
  command->add_option("CONFIG", options.file, "A run config, or a plan")->required();
  command->add_option("--steps", options.steps, "Consecutive steps to simulate")
      ->check(CLI::Range(std::uint32_t{1}, kMostSteps))
      ->capture_default_str();
  command->add_option("--trace", options.trace, "Write a Chrome/Perfetto trace to this file");
  add_report_option(*command, options.report);
  command->add_option("--policy", options.policy,
                      fmt::format("Order of work instead of the plan's: {}",
                                  fmt::join(scheduler::policy_names(), ", ")));
  command
      ->add_option("--reference", options.reference,
                   "Compare the run with the shortest possible, for small graphs: a search of "
                   "at most this many nodes")
      ->check(CLI::PositiveNumber);
  command->footer(
      "The step time is that of the steady state: the median of all steps but the first and the\n"
      "last (with --steps 2, the second; with 1, the end of the only, cold one).\n\n"
      "Examples:\n"
      "  offstage simulate run.yaml\n"
      "  offstage simulate plan.json --steps 5 --trace trace.json   # open in ui.perfetto.dev\n"
      "  offstage simulate run.yaml --report step.html\n"
      "  offstage simulate run.yaml --policy critical_path --json");
  return command;
}

json to_json(const Plan& plan, const Simulated& simulated, const SimulateOptions& options) {
  json object = metrics_json(simulated.metrics);
  object["tasks"] = simulated.graph.size();
  object["steps"] = options.steps;
  object["policy"] = scheduler::to_string(plan.strategy.policy);
  object["plan_hash"] = scheduler::plan_hash(plan);
  object["wall_s"] = simulated.wall.value;
  return object;
}

// How the whole run, its cold first step and its last one included, compares with the shortest.
struct Comparison {
  platform::Seconds run;
  scheduler::ReferenceSchedule reference;
};

std::optional<Comparison> compare_with_reference(const SimulateOptions& options,
                                                 const platform::Machine& machine,
                                                 const Simulated& simulated) {
  if (!options.reference) return std::nullopt;
  const auto known = scheduler::known_costs(machine, simulated.costs);
  const auto ends = simulated.trace.step_ends(simulated.graph);
  return Comparison{*std::max_element(ends.begin(), ends.end()),
                    scheduler::reference_schedule(simulated.graph, known.lone_times, &known.links,
                                                  *options.reference)};
}

json to_json(const Comparison& comparison) {
  return {{"run_s", comparison.run.value},
          {"lower_bound_s", comparison.reference.lower_bound.value},
          {"shortest_alone_s", comparison.reference.shortest.value},
          {"complete", comparison.reference.complete},
          {"nodes", comparison.reference.nodes}};
}

std::string to_text(const Comparison& comparison) {
  const auto& reference = comparison.reference;
  return fmt::format(
      "\nThe whole run takes {}; no schedule takes less than {} ({:.2f} % less), {}\n",
      to_text(comparison.run), to_text(reference.lower_bound),
      100.0 * (1.0 - reference.lower_bound / comparison.run),
      reference.complete ? "by an exhaustive search"
                         : fmt::format("by chains, engines and links: the search gave up after {} "
                                       "nodes",
                                       reference.nodes));
}

std::string to_text(const Plan& plan, const Simulated& simulated) {
  return fmt::format("Plan {}, {} steps of {} tasks simulated in {}\n{}\n",
                     scheduler::plan_hash(plan), simulated.graph.steps,
                     simulated.graph.size() / simulated.graph.steps, to_text(simulated.wall),
                     describe_workload(plan)) +
         describe_metrics(simulated.metrics);
}

void write_trace(const SimulateOptions& options, const platform::Machine& machine,
                 const report::TraceWindow& window, const std::string& plan_hash) {
  if (options.trace.empty()) return;
  report::write_chrome_trace(
      window, machine, {.file = options.trace, .backend = "simulated", .plan_hash = plan_hash});
}

void print_answer(const SimulateOptions& options, json object, const std::string& text,
                  const platform::Machine& machine, const scheduler::Profile& profile) {
  const auto assumed = assumed_numbers(machine, profile);
  if (options.common.json) {
    object["assumed"] = assumed;
    add_step_interval(object, profile);
    return print_json(object);
  }
  const platform::Seconds step{object["step_s"].get<double>()};
  std::string whole = text + describe_step_interval(step, profile);
  if (!assumed.empty()) whole += "\n" + describe_assumptions(assumed);
  if (!options.trace.empty()) {
    whole += fmt::format("\nTrace written to {}; open it in ui.perfetto.dev\n", options.trace);
  }
  if (!options.report.empty()) whole += fmt::format("\nReport written to {}\n", options.report);
  print_text(whole);
}

// A published system: one step is its steady state.
int run_system(const SimulateOptions& options, const scheduler::RunConfig& config) {
  if (!options.policy.empty()) {
    throw Error(ErrorCode::bad_usage,
                "--policy reorders offstage's own plans; a published system has its own order");
  }
  const auto plan = plan_system(config);
  require_fit(plan.memory);
  const SimulatedSystem simulated = simulate_system(plan, config.profile, &config.disturbances);
  if (!options.report.empty()) {
    report::write_page(system_page(plan, &simulated, config.profile), options.report);
  }
  write_trace(options, plan.machine,
              {.graph = simulated.step.graph,
               .trace = simulated.trace,
               .costs = simulated.step.costs,
               .first_step = 0,
               .offset = {}},
              "");
  print_answer(options, system_simulation_json(plan, simulated),
               describe_system_simulation(plan, simulated), plan.machine, config.profile);
  return kDone;
}

int run(const SimulateOptions& options) {
  const auto directories = data_directories(find_data_folder(options.common.data));
  Question question = read_question(options.file, directories);
  if (question.config.system) return run_system(options, question.config);
  if (!options.policy.empty()) {
    const auto policy = scheduler::policy_from_string(options.policy);
    question.config.strategy.policy = policy;
    if (question.plan) question.plan->strategy.policy = policy;
  }
  const scheduler::PlanningResult result = answer(question);
  require_fit(result.plan.memory);
  const scheduler::Profile& profile = question.config.profile;
  const Simulated simulated =
      simulate_plan(result.plan, profile, options.steps, &question.config.disturbances);
  if (!options.report.empty()) {
    report::write_page(plan_page(result.plan, &simulated, profile), options.report);
  }
  json object = to_json(result.plan, simulated, options);
  std::string text = to_text(result.plan, simulated);
  if (question.config.disturbances.lost_gpu) {
    const LostGpuCost cost =
        cost_of_lost_gpu(question, simulated.metrics.step, directories, options.steps);
    object["lost_gpu"] = lost_gpu_json(cost);
    text += describe_lost_gpu(cost);
  }
  write_trace(options, result.plan.machine,
              {.graph = simulated.graph,
               .trace = simulated.trace,
               .costs = simulated.costs,
               .first_step = 0,
               .offset = {}},
              scheduler::plan_hash(result.plan));
  if (const auto comparison = compare_with_reference(options, result.plan.machine, simulated)) {
    object["reference"] = to_json(*comparison);
    text += to_text(*comparison);
  }
  print_answer(options, std::move(object), text, result.plan.machine, profile);
  return kDone;
}

}  // namespace

void add_simulate_command(CLI::App& app, Action& action) {
  add_command<SimulateOptions>(app, action, describe, run);
}

}  // namespace offstage::cli
