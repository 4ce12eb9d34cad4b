#include "cli/study/rows.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "cli/planning.h"
#include "cli/system_planning.h"
#include "cli/system_report.h"
#include "platform/error.h"
#include "scheduler/plan_file.h"
#include "scheduler/strategy_knobs.h"
#include "sim/process_pool.h"

namespace offstage::cli {
namespace {

using nlohmann::json;
using platform::Bytes;
using platform::PoolKind;
using scheduler::DataDirectories;
using scheduler::Metrics;
using scheduler::Plan;
using scheduler::RunConfig;

// Where a config can't be read is different on every computer; what is wrong with it isn't.
std::string message_without_place(const Error& error) {
  const std::string message = error.what();
  if (!error.where()) return message;
  return message.substr(std::strlen(Error(error.code(), "", *error.where()).what()));
}

// Rows are lines of tables: lines are joined by "; ", and spaces that align columns become one.
std::string on_one_line(const std::string& message) {
  std::string line;
  std::size_t next = 0;
  while (next < message.size()) {
    const std::size_t end = std::min(message.find_first_of(" \n", next), message.size());
    line.append(message, next, end - next);
    next = std::min(message.find_first_not_of(" \n", end), message.size());
    if (next == message.size()) break;
    const bool ends_line = message.find('\n', end) < next;
    line += ends_line ? "; " : " ";
  }
  return line;
}

// The fullest GPU; all sockets, and all drives, together.
void set_peaks(json& result, const platform::Machine& machine,
               const std::vector<scheduler::PoolUse>& memory) {
  Bytes gpu, host, nvme;
  for (const auto& pool : machine.pools) {
    for (const auto& use : memory) {
      if (use.pool != pool.name) continue;
      if (pool.kind == PoolKind::gpu) gpu = std::max(gpu, use.peak);
      if (pool.kind == PoolKind::host) host += use.peak;
      if (pool.kind == PoolKind::nvme) nvme += use.peak;
    }
  }
  result["peak_gpu_bytes"] = gpu.value;
  result["peak_host_bytes"] = host.value;
  result["peak_nvme_bytes"] = nvme.value;
}

void set_metrics(json& result, const Metrics& metrics, const platform::Machine& machine,
                 std::size_t tasks) {
  result["status"] = "ok";
  result["fits"] = true;
  result["step_s"] = metrics.step.value;
  result["tokens_per_s"] = metrics.tokens_per_s;
  result["mfu"] = metrics.mfu;
  result["bound_s"] = metrics.bound.seconds.value;
  result["bound_by"] = metrics.bound.by;
  result["efficiency"] = metrics.efficiency;
  result["tasks"] = tasks;
  set_peaks(result, machine, metrics.memory);
}

void set_shortfall(json& result, const scheduler::Ledger& memory,
                   const platform::Machine& machine) {
  result["status"] = "does_not_fit";
  result["reason"] = on_one_line(memory.shortfall_message());
  result["fits"] = false;
  std::vector<scheduler::PoolUse> uses;
  for (const auto& pool : memory.pools) uses.push_back({pool.name, pool.total(), pool.capacity});
  set_peaks(result, machine, uses);
}

// With every knob fixed there is nothing to search, and one simulation is enough.
Plan plan_of(const RunConfig& config, const scheduler::SearchEffort& effort) {
  if (scheduler::fixes_every_knob(config.strategy)) {
    return make_plan(config.machine, config.workload, scheduler::fixed_knobs(config.strategy));
  }
  return scheduler::choose_plan({.machine = config.machine,
                                 .workload = config.workload,
                                 .profile = config.profile,
                                 .request = config.strategy},
                                simulator_of(config.profile, 1), effort)
      .plan;
}

void compute_own(const RunConfig& config, const StudySpec& study, json& result) {
  const Plan plan = plan_of(config, study.is_quick ? scheduler::kQuick : scheduler::SearchEffort{});
  const json file = plan_to_json(plan);
  result["knobs"] = file["strategy"];
  result["plan_hash"] = file["plan_hash"];
  if (!plan.memory.fits()) return set_shortfall(result, plan.memory, plan.machine);
  const Simulated simulated =
      simulate_plan_here(plan, config.profile, study.steps, &config.disturbances);
  set_metrics(result, simulated.metrics, plan.machine, simulated.graph.size());
}

void compute_system(const RunConfig& config, json& result) {
  const auto plan =
      make_system_plan(config.machine, config.workload, *config.system, config.profile);
  result["knobs"] = system_strategy_json(plan.strategy);
  if (!plan.memory.fits()) return set_shortfall(result, plan.memory, plan.machine);
  const SimulatedSystem simulated =
      simulate_system_here(plan, config.profile, &config.disturbances);
  set_metrics(result, simulated.metrics, plan.machine, simulated.step.graph.size());
}

json empty_result() {
  json result;
  for (const std::string& key : result_keys()) result[key] = nullptr;
  return result;
}

json compute(const StudySpec& study, std::size_t index, const DataDirectories& directories) {
  const auto begin = std::chrono::steady_clock::now();
  json result = empty_result();
  try {
    const RunConfig config =
        scheduler::read_run_config(study.config(study.row(index)), directories);
    if (config.system) {
      compute_system(config, result);
    } else {
      compute_own(config, study, result);
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_input && error.code() != ErrorCode::bad_usage) throw;
    result = empty_result();
    result["status"] = "impossible";
    result["reason"] = on_one_line(message_without_place(error));
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  result["wall_s"] = wall.count();
  return result;
}

}  // namespace

const std::vector<std::string>& result_keys() {
  static const std::vector<std::string> keys{
      "status",    "reason",  "fits",           "step_s",          "tokens_per_s",
      "mfu",       "bound_s", "bound_by",       "efficiency",      "tasks",
      "plan_hash", "knobs",   "peak_gpu_bytes", "peak_host_bytes", "peak_nvme_bytes",
  };
  return keys;
}

sim::TextJob row_job(const StudySpec& study, std::size_t index,
                     const DataDirectories& directories) {
  return {fmt::format("row {}", index + 1),
          [&study, index, &directories] { return compute(study, index, directories).dump(); }};
}

json row_result(const sim::FinishedJob& job) {
  if (!job.error) return json::parse(job.text);
  json result = empty_result();
  result["status"] = "failed";
  result["reason"] = on_one_line(message_without_place(*job.error));
  result["wall_s"] = 0.0;
  return result;
}

RunRows rows_in_processes(const StudySpec& study, const DataDirectories& directories, int workers) {
  return [&study, &directories, workers](std::span<const std::size_t> rows, const RowDone& done) {
    std::vector<sim::TextJob> jobs;
    for (const std::size_t row : rows) jobs.push_back(row_job(study, row, directories));
    sim::run_in_processes(
        jobs, workers, [&](const sim::FinishedJob& job) { done(rows[job.id], row_result(job)); });
  };
}

}  // namespace offstage::cli
