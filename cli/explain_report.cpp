#include "cli/explain_report.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/table.h"
#include "platform/format.h"
#include "sim/evaluate.h"
#include "sim/process_pool.h"

namespace offstage::cli {
namespace {

using nlohmann::json;
using platform::Bytes;
using platform::percent_text;
using platform::Seconds;
using platform::to_text;
using scheduler::EngineLoss;
using scheduler::Loss;
using scheduler::LossKind;
using scheduler::PlanningResult;

// Beyond sixteen times the batch the answer is another run, not a hint.
constexpr int kDoublings = 4;

Bytes host_bytes(const scheduler::Plan& plan) {
  Bytes sum;
  for (const auto& socket : plan.machine.sockets) {
    sum += plan.memory.pools[socket.pool].total();
  }
  return sum;
}

std::optional<ClippingCost> clipping_cost(const Question& question, const PlanningResult& result,
                                          const Simulated& prediction) {
  if (result.plan.strategy.clipping != scheduler::Clipping::exact) return std::nullopt;
  Question without{question.config, std::nullopt};
  without.config.strategy.clipping = scheduler::Clipping::none;
  const PlanningResult other = answer(without);
  if (!other.fits) return std::nullopt;
  const Simulated simulated =
      simulate_plan(other.plan, question.config.profile, sim::kSimulatedSteps);
  return ClippingCost{prediction.metrics.step, simulated.metrics.step, host_bytes(result.plan),
                      host_bytes(other.plan)};
}

// The engine that sets the bound, when it is one and not a GPU's.
std::optional<EngineLoss> bottleneck_loss(const Simulated& prediction) {
  const auto& engines = prediction.graph.engines;
  for (std::size_t i = 0; i < engines.size(); ++i) {
    if (engines[i].name != prediction.metrics.bound.by) continue;
    if (engines[i].kind == scheduler::EngineKind::compute) return std::nullopt;
    return scheduler::lost_time(prediction.graph, prediction.trace,
                                static_cast<scheduler::EngineId>(i));
  }
  return std::nullopt;
}

// The mean over engines.
EngineLoss mean_of(const std::vector<EngineLoss>& losses) {
  EngineLoss mean;
  const double part = 1.0 / static_cast<double>(losses.size());
  for (const EngineLoss& loss : losses) {
    mean.window += loss.window * part;
    mean.busy += loss.busy * part;
    for (std::size_t kind = 0; kind < loss.lost.size(); ++kind) {
      mean.lost[kind].forward += loss.lost[kind].forward * part;
      mean.lost[kind].backward += loss.lost[kind].backward * part;
      mean.lost[kind].turn += loss.lost[kind].turn * part;
    }
  }
  return mean;
}

// Kinds by what they cost, those that cost nothing left out.
std::vector<LossKind> kinds_by_cost(const EngineLoss& loss) {
  std::vector<LossKind> kinds;
  for (std::size_t kind = 0; kind < loss.lost.size(); ++kind) {
    if (loss.lost[kind].total().value > 0.0) kinds.push_back(static_cast<LossKind>(kind));
  }
  std::ranges::stable_sort(kinds, std::ranges::greater(), [&](LossKind kind) {
    return loss.lost[static_cast<std::size_t>(kind)].total();
  });
  return kinds;
}

std::string resource_table(const Explanation& explanation, Seconds step) {
  Table table({"resource", "busiest", "needs", "of the step"},
              {Align::left, Align::left, Align::right, Align::right});
  for (const auto& bound : explanation.resources) {
    table.add({bound.resource, bound.busiest, to_text(bound.seconds),
               percent_text(bound.seconds / step)});
  }
  return "\nBound of each resource: what it would need without waiting for any other\n" +
         table.text();
}

std::string loss_table(const std::string& title, const EngineLoss& loss) {
  std::string text = fmt::format("\n{}: busy {} of {}, lost {} ({})\n", title, to_text(loss.busy),
                                 to_text(loss.window), to_text(loss.total_lost()),
                                 percent_text(loss.total_lost() / loss.window));
  Table table({"waiting for", "lost", "of the step", "in forward", "in backward", "between steps"});
  for (const LossKind kind : kinds_by_cost(loss)) {
    const Loss& lost = loss.lost[static_cast<std::size_t>(kind)];
    table.add({std::string(scheduler::to_string(kind)), to_text(lost.total()),
               percent_text(lost.total() / loss.window), to_text(lost.forward),
               to_text(lost.backward), to_text(lost.turn)});
  }
  return text + (table.empty() ? "" : table.text());
}

std::string describe_losses(const Explanation& explanation) {
  const auto& losses = explanation.compute;
  if (losses.empty()) return "";
  std::string text = loss_table(
      losses.size() == 1 ? losses.front().engine
                         : fmt::format("GPU compute in a middle step, mean of {}", losses.size()),
      mean_of(losses));
  const auto worst = std::ranges::max_element(losses, {}, &EngineLoss::total_lost);
  if (losses.size() > 1) {
    text += fmt::format("  most is lost on {}: {}\n", worst->engine, to_text(worst->total_lost()));
  }
  if (explanation.bottleneck) {
    text += loss_table(explanation.bottleneck->engine + ", which sets the bound",
                       *explanation.bottleneck);
  }
  return text;
}

std::string describe_clipping(const ClippingCost& cost) {
  return fmt::format(
      "\nWithout exact clipping\n"
      "  step         {} instead of {} ({} of it)\n"
      "  CPU memory   {} instead of {}\n",
      to_text(cost.step_without), to_text(cost.step), percent_text(cost.step_without / cost.step),
      to_text(cost.host_without), to_text(cost.host));
}

std::string describe_batches(const Explanation& explanation) {
  const auto& outlook = explanation.larger_batches;
  if (outlook.empty()) return "";
  std::string text = "\nWith a larger batch\n";
  Table table({"global batch", "step", "efficiency"});
  for (const auto& batch : outlook) {
    table.add(
        {std::to_string(batch.global_batch), to_text(batch.step), percent_text(batch.efficiency)});
  }
  text += table.text();
  if (outlook.back().efficiency < kGoodEfficiency) {
    text += fmt::format("  none of these reaches {}\n", percent_text(kGoodEfficiency));
  }
  return text;
}

std::string describe_numa(const Explanation& explanation) {
  std::string text;
  for (const auto& share : explanation.numa) {
    text += fmt::format("  {:<12} {} of {} on each of {} NUMA nodes\n", share.pool,
                        to_text(share.total), to_text(share.capacity), share.nodes);
  }
  if (text.empty()) return "";
  return "\nCPU memory is interleaved over the NUMA nodes of its socket\n" + text;
}

std::string estimator_table(const Explanation& explanation, const PlanningResult& result) {
  Table table({"estimator", "a GPU", "CPU memory", "here", "formula"},
              {Align::left, Align::right, Align::right, Align::left, Align::left});
  for (const auto& estimate : explanation.estimates) {
    table.add({estimate.name, estimate.gpu.value > 0 ? to_text(estimate.gpu) : "-",
               estimate.host ? to_text(*estimate.host) : "-",
               scheduler::estimate_fits(estimate, result.plan.machine) ? "fits" : "does not fit",
               estimate.formula});
  }
  Bytes gpu;
  for (const auto& each : result.plan.machine.gpus) {
    gpu = std::max(gpu, result.plan.memory.pools[each.pool].total());
  }
  table.add({"this plan", to_text(gpu), to_text(host_bytes(result.plan)),
             result.fits ? "fits" : "does not fit", "the ledger above"});
  return "\nWhat the estimators of others would have said (P parameters, L of the largest module,\n"
         "n GPUs, D blocks; against whole memories, for mixed precision; sources in --json)\n" +
         table.text();
}

json loss_json(const EngineLoss& loss) {
  json kinds = json::array();
  for (const LossKind kind : kinds_by_cost(loss)) {
    const Loss& lost = loss.lost[static_cast<std::size_t>(kind)];
    kinds.push_back({{"kind", scheduler::to_string(kind)},
                     {"seconds", lost.total().value},
                     {"part", lost.total() / loss.window},
                     {"forward_s", lost.forward.value},
                     {"backward_s", lost.backward.value},
                     {"turn_s", lost.turn.value}});
  }
  return kinds;
}

json estimators_json(const Explanation& explanation, const PlanningResult& result) {
  json list = json::array();
  for (const auto& estimate : explanation.estimates) {
    list.push_back({{"name", estimate.name},
                    {"formula", estimate.formula},
                    {"source", estimate.source},
                    {"gpu_bytes", estimate.gpu.value},
                    {"host_bytes", estimate.host ? json(estimate.host->value) : json()},
                    {"fits", scheduler::estimate_fits(estimate, result.plan.machine)}});
  }
  return list;
}

}  // namespace

Explanation explain(const Question& question, const PlanningResult& result,
                    const Simulated* prediction) {
  const scheduler::RunConfig& config = question.config;
  Explanation explanation;
  explanation.numa = scheduler::numa_shares(result.plan);
  explanation.estimates = scheduler::other_estimates(
      scheduler::estimator_input(result.plan.whole_table(), result.plan.gpus()));
  if (prediction == nullptr) return explanation;
  explanation.resources =
      scheduler::resource_bounds(result.plan, prediction->graph, prediction->costs);
  explanation.compute = scheduler::lost_compute_time(prediction->graph, prediction->trace);
  explanation.bottleneck = bottleneck_loss(*prediction);
  explanation.clipping = clipping_cost(question, result, *prediction);
  if (prediction->metrics.efficiency < kGoodEfficiency) {
    explanation.larger_batches = scheduler::larger_batches(
        {.machine = config.machine,
         .workload = config.workload,
         .profile = config.profile,
         .request = config.strategy},
        simulator_of(config.profile, sim::default_workers()), kGoodEfficiency, kDoublings);
  }
  return explanation;
}

std::string describe_explanation(const Explanation& explanation, const PlanningResult& result,
                                 const Simulated* prediction) {
  std::string text = describe_numa(explanation);
  if (prediction != nullptr) {
    text += resource_table(explanation, prediction->metrics.step) + describe_losses(explanation);
  }
  if (explanation.clipping) text += describe_clipping(*explanation.clipping);
  return text + describe_batches(explanation) + estimator_table(explanation, result);
}

json explanation_json(const Explanation& explanation, const PlanningResult& result,
                      const Simulated* prediction) {
  json object{
      {"resources", json::array()},      {"lost", json::array()},
      {"lost_by_engine", json::array()}, {"numa", json::array()},
      {"larger_batches", json::array()}, {"clipping", nullptr},
      {"bottleneck", nullptr},           {"estimators", estimators_json(explanation, result)}};
  for (const auto& bound : explanation.resources) {
    object["resources"].push_back({{"resource", bound.resource},
                                   {"busiest", bound.busiest},
                                   {"seconds", bound.seconds.value},
                                   {"part", bound.seconds / prediction->metrics.step}});
  }
  if (!explanation.compute.empty()) {
    const EngineLoss mean = mean_of(explanation.compute);
    object["lost"] = loss_json(mean);
    object["lost_window_s"] = mean.window.value;
    object["lost_busy_s"] = mean.busy.value;
  }
  for (const EngineLoss& loss : explanation.compute) {
    object["lost_by_engine"].push_back({{"engine", loss.engine},
                                        {"window_s", loss.window.value},
                                        {"busy_s", loss.busy.value},
                                        {"lost_s", loss.total_lost().value}});
  }
  if (const auto& engine = explanation.bottleneck) {
    object["bottleneck"] = {{"engine", engine->engine},
                            {"window_s", engine->window.value},
                            {"busy_s", engine->busy.value},
                            {"lost", loss_json(*engine)}};
  }
  for (const auto& share : explanation.numa) {
    object["numa"].push_back({{"pool", share.pool},
                              {"nodes", share.nodes},
                              {"total_bytes", share.total.value},
                              {"capacity_bytes", share.capacity.value}});
  }
  if (const auto& cost = explanation.clipping) {
    object["clipping"] = {{"step_s", cost->step.value},
                          {"step_without_s", cost->step_without.value},
                          {"host_bytes", cost->host.value},
                          {"host_without_bytes", cost->host_without.value}};
  }
  for (const auto& batch : explanation.larger_batches) {
    object["larger_batches"].push_back({{"global_batch", batch.global_batch},
                                        {"step_s", batch.step.value},
                                        {"efficiency", batch.efficiency}});
  }
  return object;
}

}  // namespace offstage::cli
