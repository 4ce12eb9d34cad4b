#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/assumptions.h"
#include "cli/command.h"
#include "cli/data_folder.h"
#include "cli/output.h"
#include "cli/plan_report.h"
#include "cli/planning.h"
#include "cli/table.h"
#include "platform/format.h"
#include "report/chrome_trace.h"
#include "scheduler/plan_file.h"
#include "sim/evaluate.h"

// offstage simulate: runs a plan on the simulator and says how long a step takes and why.
namespace offstage::cli {
namespace {

using nlohmann::json;
using platform::percent_text;
using platform::to_text;
using scheduler::Metrics;
using scheduler::Plan;

struct SimulateOptions {
  CommonOptions common;
  std::string file;
  std::uint32_t steps = sim::kSimulatedSteps;
  std::string trace;
  std::string policy;
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
  command->add_option("--policy", options.policy,
                      "Order of work instead of the plan's: fifo, planned or critical_path");
  command->footer(
      "The step time is that of the steady state: the median distance between the ends of\n"
      "consecutive steps (with --steps 1, the end of the only, cold one).\n\n"
      "Examples:\n"
      "  offstage simulate run.yaml\n"
      "  offstage simulate plan.json --steps 5 --trace trace.json   # open in ui.perfetto.dev\n"
      "  offstage simulate run.yaml --policy critical_path --json");
  return command;
}

json to_json(const Plan& plan, const Simulated& simulated, const SimulateOptions& options) {
  const Metrics& metrics = simulated.metrics;
  json engines = json::array(), links = json::array(), memory = json::array();
  for (const auto& engine : metrics.engines) {
    engines.push_back({{"engine", engine.engine},
                       {"busy_s", engine.busy.value},
                       {"utilisation", engine.utilisation}});
  }
  for (const auto& link : metrics.links) {
    links.push_back(
        {{"link", link.link}, {"bytes", link.bytes}, {"utilisation", link.utilisation}});
  }
  for (const auto& pool : metrics.memory) {
    memory.push_back({{"pool", pool.pool},
                      {"peak_bytes", pool.peak.value},
                      {"capacity_bytes", pool.capacity.value}});
  }
  return {{"step_s", metrics.step.value},
          {"tokens_per_s", metrics.tokens_per_s},
          {"mfu", metrics.mfu},
          {"bound_s", metrics.bound.seconds.value},
          {"bound_by", metrics.bound.by},
          {"efficiency", metrics.efficiency},
          {"engines", engines},
          {"links", links},
          {"memory", memory},
          {"tasks", simulated.graph.size()},
          {"steps", options.steps},
          {"policy", scheduler::to_string(plan.strategy.policy)},
          {"plan_hash", scheduler::plan_hash(plan)},
          {"wall_s", simulated.wall.value}};
}

// Engines that do the same for different devices share a line: eight GPUs rarely differ.
std::string engine_table(const Metrics& metrics) {
  struct Group {
    std::vector<std::string> names;
    double least = std::numeric_limits<double>::infinity(), most = 0.0;
    platform::Seconds busy;
  };
  std::map<std::string, Group> groups;
  std::vector<std::string> order;
  for (const auto& engine : metrics.engines) {
    const std::string kind = engine.engine.substr(engine.engine.find('.') + 1);
    if (!groups.contains(kind)) order.push_back(kind);
    Group& group = groups[kind];
    group.names.push_back(engine.engine);
    group.least = std::min(group.least, engine.utilisation);
    group.most = std::max(group.most, engine.utilisation);
    group.busy = std::max(group.busy, engine.busy);
  }
  Table table({"engine", "busiest", "utilisation"});
  for (const std::string& kind : order) {
    const Group& group = groups[kind];
    const std::string least = percent_text(group.least), most = percent_text(group.most);
    table.add({join_names(group.names), to_text(group.busy),
               least == most ? most : fmt::format("{} to {}", least, most)});
  }
  return table.text();
}

// The links that carry most; the rest is in --json.
std::string link_table(const Metrics& metrics) {
  constexpr std::size_t kShown = 8;
  std::vector<scheduler::LinkUse> links;
  for (const auto& link : metrics.links) {
    if (link.bytes > 0.0) links.push_back(link);
  }
  std::ranges::stable_sort(links, std::ranges::greater(), &scheduler::LinkUse::utilisation);
  if (links.size() > kShown) links.resize(kShown);
  Table table({"link", "utilisation"});
  for (const auto& link : links) table.add({link.link, percent_text(link.utilisation)});
  return table.empty() ? "" : "\n" + table.text();
}

// Pools that are alike share a line.
std::string memory_table(const Metrics& metrics) {
  Table table({"memory", "peak", "capacity"});
  for (std::size_t i = 0; i < metrics.memory.size();) {
    const auto& pool = metrics.memory[i];
    std::vector<std::string> names;
    for (; i < metrics.memory.size() && metrics.memory[i].peak == pool.peak &&
           metrics.memory[i].capacity == pool.capacity;
         ++i) {
      names.push_back(metrics.memory[i].pool);
    }
    if (pool.peak.value == 0) continue;  // such as a drive the plan has no use for
    table.add({join_names(names), to_text(pool.peak), to_text(pool.capacity)});
  }
  return "\n" + table.text();
}

std::string to_text(const Plan& plan, const Simulated& simulated) {
  const Metrics& metrics = simulated.metrics;
  return fmt::format(
             "Plan {}, {} steps of {} tasks simulated in {}\n{}\n"
             "  step         {} (simulated), {:.0f} tokens/s, MFU {}\n"
             "  bound        {}: no schedule beats it; set by {}\n"
             "  efficiency   {} of the bound's pace\n\n",
             scheduler::plan_hash(plan), simulated.graph.steps,
             simulated.graph.size() / simulated.graph.steps, to_text(simulated.wall),
             describe_workload(plan), to_text(metrics.step), metrics.tokens_per_s,
             percent_text(metrics.mfu), to_text(metrics.bound.seconds), metrics.bound.by,
             percent_text(metrics.efficiency)) +
         engine_table(metrics) + link_table(metrics) + memory_table(metrics);
}

int run(const SimulateOptions& options) {
  const auto directories = data_directories(find_data_folder(options.common.data));
  Question question = read_question(options.file, directories);
  if (!options.policy.empty()) {
    const auto policy = scheduler::policy_from_string(options.policy);
    question.config.strategy.policy = policy;
    if (question.plan) question.plan->strategy.policy = policy;
  }
  const scheduler::PlanningResult result = answer(question);
  require_fit(result);
  const scheduler::Profile& profile = question.config.profile;
  const Simulated simulated = simulate_plan(result.plan, profile, options.steps);
  if (!options.trace.empty()) {
    report::write_chrome_trace({.graph = simulated.graph,
                                .trace = simulated.trace,
                                .costs = simulated.costs,
                                .first_step = 0,
                                .offset = {}},
                               result.plan.machine,
                               {.file = options.trace,
                                .backend = "simulated",
                                .plan_hash = scheduler::plan_hash(result.plan)});
  }
  const auto assumed = assumed_numbers(result.plan.machine, profile);
  if (options.common.json) {
    json object = to_json(result.plan, simulated, options);
    object["assumed"] = assumed;
    print_json(object);
  } else {
    std::string text = to_text(result.plan, simulated);
    if (!assumed.empty()) text += "\n" + describe_assumptions(assumed);
    if (!options.trace.empty()) {
      text += fmt::format("\nTrace written to {}; open it in ui.perfetto.dev\n", options.trace);
    }
    print_text(text);
  }
  return kDone;
}

}  // namespace

void add_simulate_command(CLI::App& app, Action& action) {
  add_command<SimulateOptions>(app, action, describe, run);
}

}  // namespace offstage::cli
