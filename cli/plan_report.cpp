#include "cli/plan_report.h"

#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/assumptions.h"
#include "cli/table.h"
#include "platform/format.h"
#include "scheduler/ledger_groups.h"
#include "scheduler/plan_file.h"

namespace offstage::cli {
namespace {

using nlohmann::json;
using platform::to_text;
using scheduler::Ledger;
using scheduler::Plan;
using scheduler::PoolLedger;

std::string pool_table(const scheduler::PoolGroup& group) {
  const PoolLedger& pool = group.pool;
  Table table({"", "", "how", "moved by"}, {Align::left, Align::right, Align::left, Align::left});
  for (const auto& line : group.lines) {
    table.add({line.what, to_text(line.bytes), line.how, line.knob});
  }
  table.add({"total", to_text(pool.total()),
             "while training and writing checkpoints; " + to_text(pool.while_loading()) +
                 " while loading",
             ""});
  table.add({"capacity", to_text(pool.capacity), "", ""});
  const platform::Bytes left = pool.capacity - pool.total();
  if (left < platform::Bytes{0}) {
    table.add({"SHORT BY", to_text(platform::Bytes{-left.value}), "", ""});
  } else {
    table.add({"free", to_text(left), "", ""});
  }
  return table.text();
}

// "kept_activations 2, micro_batch 4": the knobs in which another plan differs, with its values.
std::string describe_differences(const Plan& other, const Plan& plan) {
  const json knobs = scheduler::plan_to_json(other)["strategy"];
  const json ours = scheduler::plan_to_json(plan)["strategy"];
  std::string text;
  for (const auto& [name, value] : knobs.items()) {
    if (value == ours[name]) continue;
    const bool packs = value.is_array() && name == "layers_per_submodel";
    const std::string shown = value.is_string() ? value.get<std::string>()
                              : packs           ? fmt::format("in {} packs", value.size())
                                                : value.dump();
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, shown);
  }
  if (ours.contains("shares") && !knobs.contains("shares")) {
    text += fmt::format("{}shares even", text.empty() ? "" : ", ");
  }
  return text;
}

std::string describe_prediction(const PlanReport& report) {
  const scheduler::Metrics& metrics = report.prediction->metrics;
  std::string text = fmt::format(
      "\nPrediction (simulated)\n"
      "  step         {}, {:.0f} tokens/s\n"
      "  bound        {}: no schedule beats it; set by {}\n"
      "  efficiency   {} of the bound's pace\n",
      to_text(metrics.step), metrics.tokens_per_s, to_text(metrics.bound.seconds), metrics.bound.by,
      platform::percent_text(metrics.efficiency));
  const scheduler::PlanningResult& result = report.result;
  if (result.runner_up && result.runner_up_step) {
    text += fmt::format("  runner-up    {}: {}\n", to_text(*result.runner_up_step),
                        describe_differences(*result.runner_up, result.plan));
  }
  return text + describe_assumptions(report.assumed);
}

}  // namespace

json memory_json(const Ledger& ledger) {
  json pools = json::array();
  for (const PoolLedger& pool : ledger.pools) {
    json lines = json::array();
    for (const auto& line : pool.lines) {
      lines.push_back({{"what", line.what},
                       {"bytes", line.bytes.value},
                       {"how", line.how},
                       {"knob", line.knob.empty() ? json() : json(line.knob)}});
    }
    pools.push_back({{"pool", pool.name},
                     {"capacity_bytes", pool.capacity.value},
                     {"total_bytes", pool.total().value},
                     {"loading_bytes", pool.while_loading().value},
                     {"free_bytes", (pool.capacity - pool.total()).value},
                     {"lines", lines}});
  }
  return pools;
}

std::string describe_shares(const Plan& plan) {
  const auto& shares = plan.strategy.shares;
  if (!shares.empty()) {
    return fmt::format("the GPUs run {} micro-batches of {}", fmt::join(shares, ", "),
                       plan.strategy.micro_batch);
  }
  const std::int64_t each = plan.micro_batches(0);
  return fmt::format("each GPU runs {} micro-batch{} of {}", each, each == 1 ? "" : "es",
                     plan.strategy.micro_batch);
}

std::string describe_workload(const Plan& plan) {
  const auto& workload = plan.workload;
  const std::int64_t gpus = plan.gpus();
  const std::string hosts =
      plan.hosts() > 1 ? fmt::format(", on each of {} hosts", plan.hosts()) : "";
  return fmt::format(
      "  model        {}: {} parameters, {} blocks in {} sub-models with embedding and head\n"
      "  platform     {}: {} {}GPU{}{}\n"
      "  step         {} sequences of {} tokens in {}; {}\n",
      workload.model.name, platform::count_text(static_cast<double>(plan.parameters())),
      workload.model.layers, plan.submodels.size(), plan.machine.name, gpus,
      platform::has_virtual_gpus(plan.machine) ? "virtual " : "", gpus == 1 ? "" : "s", hosts,
      workload.global_batch, workload.sequence_length,
      workload.precision == platform::Precision::bf16 ? "bf16" : "f32", describe_shares(plan));
}

std::string describe_memory(const Ledger& ledger) {
  std::string text;
  for (const scheduler::PoolGroup& group : scheduler::group_pools(ledger)) {
    text += fmt::format("\nMemory of {}{}\n", scheduler::join_names(group.names),
                        group.names.size() > 1 ? ", each" : "") +
            pool_table(group);
  }
  return text;
}

std::string describe_strategy(const Plan& plan) {
  std::string text = "\nStrategy\n";
  const json strategy = scheduler::plan_to_json(plan)["strategy"];
  for (const auto& [knob, value] : strategy.items()) {
    text += fmt::format("  {:<23} {}\n", knob,
                        value.is_string() ? value.get<std::string>() : value.dump());
  }
  if (plan.reasons.empty()) return text;
  text += "\nReasons\n";
  for (const std::string& reason : plan.reasons) text += "  - " + reason + "\n";
  return text;
}

std::string describe_plan(const PlanReport& report) {
  const Plan& plan = report.result.plan;
  std::string text = fmt::format("Plan {}: {}\n", scheduler::plan_hash(plan),
                                 report.result.fits ? "fits" : "DOES NOT FIT") +
                     describe_workload(plan) + describe_strategy(plan) +
                     describe_memory(plan.memory);
  if (report.prediction != nullptr) return text + describe_prediction(report);
  return text + "\nDoes not fit: " + plan.memory.shortfall_message() + "\n";
}

json plan_report_json(const PlanReport& report) {
  const scheduler::PlanningResult& result = report.result;
  const Plan& plan = result.plan;
  const auto worst = plan.memory.worst();
  json object{{"fits", result.fits},
              {"limited_by", worst ? json(plan.memory.pools[*worst].name) : json()},
              {"plan_hash", scheduler::plan_hash(plan)},
              {"parameters", plan.parameters()},
              {"submodels", plan.submodels.size()},
              {"strategy", scheduler::plan_to_json(plan)["strategy"]},
              {"reasons", plan.reasons},
              {"memory", memory_json(plan.memory)},
              {"assumed", report.assumed}};
  for (const char* key : {"tasks", "step_s", "tokens_per_s", "bound_s", "bound_by", "efficiency"}) {
    object[key] = nullptr;
  }
  if (worst) {
    const PoolLedger& pool = plan.memory.pools[*worst];
    object["shortfall_bytes"] = (pool.total() - pool.capacity).value;
  }
  if (report.prediction == nullptr) return object;
  const scheduler::Metrics& metrics = report.prediction->metrics;
  object["tasks"] = report.prediction->graph.size() / report.prediction->graph.steps;
  object["step_s"] = metrics.step.value;
  object["tokens_per_s"] = metrics.tokens_per_s;
  object["bound_s"] = metrics.bound.seconds.value;
  object["bound_by"] = metrics.bound.by;
  object["efficiency"] = metrics.efficiency;
  if (result.runner_up && result.runner_up_step) {
    object["runner_up"] = {{"plan_hash", scheduler::plan_hash(*result.runner_up)},
                           {"strategy", scheduler::plan_to_json(*result.runner_up)["strategy"]},
                           {"step_s", result.runner_up_step->value}};
  }
  return object;
}

}  // namespace offstage::cli
