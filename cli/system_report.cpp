#include "cli/system_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/assumptions.h"
#include "cli/metrics_report.h"
#include "cli/plan_report.h"
#include "platform/format.h"

namespace offstage::cli {

using nlohmann::json;
using platform::to_text;
using scheduler::systems::SystemPlan;
using scheduler::systems::SystemStrategy;

namespace {

std::string describe_workload(const SystemPlan& plan) {
  const auto& workload = plan.workload;
  const auto& strategy = plan.strategy;
  return fmt::format(
      "  model        {}: {} parameters, {} blocks\n"
      "  platform     {}: {} of {} GPUs; data {} x tensor {} x pipeline {}\n"
      "  step         {} sequences of {} tokens in {}; {} micro-batch{} of {} a data rank\n",
      workload.model.name, platform::count_text(static_cast<double>(plan.parameters())),
      workload.model.layers, plan.machine.name, plan.gpus(), plan.machine.gpus.size(),
      strategy.data, strategy.tensor, strategy.pipeline, workload.global_batch,
      workload.sequence_length, workload.precision == platform::Precision::bf16 ? "bf16" : "f32",
      plan.micro_batches(), plan.micro_batches() == 1 ? "" : "es", strategy.micro_batch);
}

}  // namespace

json system_strategy_json(const SystemStrategy& strategy) {
  return {{"system", to_string(strategy.system)},
          {"data", strategy.data},
          {"tensor", strategy.tensor},
          {"pipeline", strategy.pipeline},
          {"sharding", strategy.sharding},
          {"sequence_parallel", strategy.sequence_parallel},
          {"micro_batch", strategy.micro_batch},
          {"recompute", to_string(strategy.recompute)},
          {"parameters", to_string(strategy.parameters)},
          {"optimizer", to_string(strategy.optimizer)},
          {"activations", to_string(strategy.activations)},
          {"overlap_communication", strategy.overlap_communication},
          {"pinned_memory", strategy.pinned_memory},
          {"bucket_elements", strategy.bucket_elements},
          {"prefetch_elements", strategy.prefetch_elements},
          {"live_elements", strategy.live_elements},
          {"persistent_elements", strategy.persistent_elements},
          {"sub_group_elements", strategy.sub_group_elements}};
}

std::string describe_system_plan(const SystemReport& report) {
  const SystemPlan& plan = report.plan;
  std::string text = fmt::format("{} (software profile {}): {}\n", to_string(plan.strategy.system),
                                 report.profile, plan.memory.fits() ? "fits" : "DOES NOT FIT") +
                     describe_workload(plan) + "\nStrategy\n";
  const json strategy = system_strategy_json(plan.strategy);
  for (const auto& [knob, value] : strategy.items()) {
    text += fmt::format("  {:<23} {}\n", knob,
                        value.is_string() ? value.get<std::string>() : value.dump());
  }
  text += describe_memory(plan.memory);
  if (report.prediction == nullptr) {
    return text + "\nDoes not fit: " + plan.memory.shortfall_message() + "\n";
  }
  const auto& metrics = report.prediction->metrics;
  return text +
         fmt::format(
             "\nPrediction (simulated)\n"
             "  step         {}, {:.0f} tokens/s\n"
             "  bound        {}: no schedule beats it; set by {}\n"
             "  efficiency   {} of the bound's pace\n",
             to_text(metrics.step), metrics.tokens_per_s, to_text(metrics.bound.seconds),
             metrics.bound.by, platform::percent_text(metrics.efficiency)) +
         describe_assumptions(report.assumed);
}

json system_plan_json(const SystemReport& report) {
  const SystemPlan& plan = report.plan;
  const auto worst = plan.memory.worst();
  json object{{"fits", plan.memory.fits()},
              {"limited_by", worst ? json(plan.memory.pools[*worst].name) : json()},
              {"system", to_string(plan.strategy.system)},
              {"profile", report.profile},
              {"parameters", plan.parameters()},
              {"strategy", system_strategy_json(plan.strategy)},
              {"memory", memory_json(plan.memory)},
              {"assumed", report.assumed}};
  for (const char* key : {"tasks", "step_s", "tokens_per_s", "bound_s", "bound_by", "efficiency"}) {
    object[key] = nullptr;
  }
  if (report.prediction == nullptr) return object;
  const auto& metrics = report.prediction->metrics;
  object["tasks"] = report.prediction->step.graph.size();
  object["step_s"] = metrics.step.value;
  object["tokens_per_s"] = metrics.tokens_per_s;
  object["bound_s"] = metrics.bound.seconds.value;
  object["bound_by"] = metrics.bound.by;
  object["efficiency"] = metrics.efficiency;
  return object;
}

std::string describe_system_simulation(const SystemPlan& plan, const SimulatedSystem& simulated) {
  return fmt::format("{}: a step of {} tasks simulated in {}\n", to_string(plan.strategy.system),
                     simulated.step.graph.size(), to_text(simulated.wall)) +
         describe_workload(plan) + "\n" + describe_metrics(simulated.metrics);
}

json system_simulation_json(const SystemPlan& plan, const SimulatedSystem& simulated) {
  json object = metrics_json(simulated.metrics);
  object["system"] = to_string(plan.strategy.system);
  object["tasks"] = simulated.step.graph.size();
  object["steps"] = 1;
  object["wall_s"] = simulated.wall.value;
  return object;
}

}  // namespace offstage::cli
