#include "cli/capacity/jobs.h"

#include <algorithm>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "sim/process_pool.h"

namespace offstage::cli {
namespace {

using nlohmann::json;
using scheduler::FitLimit;
using scheduler::PlanningInput;
using scheduler::RunConfig;
using scheduler::Speed;
using workloads::Workload;

json to_json(const std::optional<FitLimit>& limit) {
  if (!limit) return {};
  return {{"pool", limit->pool},
          {"line", limit->line},
          {"knob", limit->knob},
          {"lacks", limit->lacks.value}};
}

std::optional<FitLimit> to_limit(const json& object) {
  if (object.is_null()) return std::nullopt;
  return FitLimit{
      object["pool"], object["line"], object["knob"], {object["lacks"].get<std::int64_t>()}};
}

json to_json(const LargestBatch& largest) {
  return {{"batch", largest.batch}, {"limit", to_json(largest.limit)}};
}

LargestBatch to_batch(const json& object) {
  return {object["batch"].get<std::int64_t>(), to_limit(object["limit"])};
}

json to_json(const std::optional<Speed>& speed) {
  if (!speed) return {};
  return {
      {"step", speed->step.value}, {"bound", speed->bound.seconds.value}, {"by", speed->bound.by}};
}

std::optional<Speed> to_speed(const json& object) {
  if (object.is_null()) return std::nullopt;
  return Speed{{object["step"].get<double>()},
               {{object["bound"].get<double>()}, object["by"].get<std::string>()}};
}

std::vector<json> run_jobs(const std::vector<std::function<json()>>& jobs) {
  std::vector<sim::TextJob> processes;
  for (const auto& job : jobs) {
    processes.push_back({"part of a capacity answer", [&job] { return job().dump(); }});
  }
  std::vector<json> results;
  for (const auto& text : sim::run_in_processes(processes, sim::default_workers())) {
    results.push_back(json::parse(text));
  }
  return results;
}

Workload with_batch(Workload workload, std::int64_t batch) {
  workload.global_batch = batch;
  return workload;
}

PlanningInput input_of(const Setting& setting, const Workload& workload, const RunConfig& config) {
  return {setting.machine, workload, config.profile, setting.request};
}

// The config's batch; with other GPUs than the config's machine has, the next they can share.
std::int64_t dealt_batch(const Setting& setting, const Workload& workload,
                         const RunConfig& config) {
  if (setting.machine.gpus.size() == config.machine.gpus.size()) return workload.global_batch;
  return dealable_batch(input_of(setting, workload, config), workload.global_batch);
}

LargestBatch batch_of(const PlanningInput& input) {
  const std::int64_t batch = largest_batch(input, scheduler::kMostTokens);
  return {batch, batch_limit(input, batch, scheduler::kMostTokens)};
}

json sizes_of(const Setting& setting, const std::vector<NamedRow>& rows, const RunConfig& config,
              bool with_limits) {
  const std::int64_t batch = dealt_batch(setting, config.workload, config);
  const Workload asked = with_batch(config.workload, batch);
  const PlanningInput input = input_of(setting, asked, config);
  json answers = json::array();
  for (const NamedRow& row : rows) {
    scheduler::ModelRow dealt = row.row;
    dealt.model = [&row, batch](std::int64_t index) {
      return with_batch(row.row.model(index), batch);
    };
    const auto largest = largest_in_row(input, dealt);
    const auto limit = with_limits ? row_limit(input, dealt, largest) : std::nullopt;
    answers.push_back({{"index", largest ? json(*largest) : json()}, {"limit", to_json(limit)}});
  }
  const LargestBatch largest = with_limits
                                   ? batch_of(input)
                                   : LargestBatch{largest_batch(input, scheduler::kMostTokens), {}};
  return {{"rows", answers}, {"batch", to_json(largest)}, {"fits", anything_fits(input)}};
}

Sizes to_sizes(const json& object) {
  Sizes sizes{{}, to_batch(object["batch"]), object["fits"].get<bool>()};
  for (const json& row : object["rows"]) {
    LargestOfRow largest{{}, to_limit(row["limit"])};
    if (!row["index"].is_null()) largest.index = row["index"].get<std::int64_t>();
    sizes.rows.push_back(std::move(largest));
  }
  return sizes;
}

// The config's batch and the largest, and for the config's own model one sequence on each GPU: the
// search takes long over small batches, for which it tries tensor splits too.
json frontier_of(const SizedModel& model, const Setting& setting, const RunConfig& config) {
  const auto evaluate = simulator_of(config.profile, 1);
  const PlanningInput input = input_of(setting, model.workload, config);
  const LargestBatch largest = batch_of(input);
  std::set<std::int64_t> batches{model.workload.global_batch, largest.batch};
  if (model.workload.model.name == config.workload.model.name) {
    batches.insert(dealable_batch(input, 1));
  }
  json points = json::array();
  for (const std::int64_t batch : batches) {
    if (batch > largest.batch || batch == 0) continue;
    const Workload workload = with_batch(model.workload, batch);
    const auto speed = quick_speed(input_of(setting, workload, config), evaluate);
    points.push_back({{"batch", batch}, {"speed", to_json(speed)}});
  }
  return {{"largest", to_json(largest)}, {"points", points}};
}

json speed_of(const Setting& setting, const Workload& compared, const RunConfig& config) {
  const Workload workload = with_batch(compared, dealt_batch(setting, compared, config));
  if (!setting.changes_speed) return {{"batch", workload.global_batch}, {"speed", json()}};
  const auto speed =
      quick_speed(input_of(setting, workload, config), simulator_of(config.profile, 1));
  return {{"batch", workload.global_batch}, {"speed", to_json(speed)}};
}

}  // namespace

std::vector<Sizes> find_sizes(const std::vector<Setting>& settings,
                              const std::vector<NamedRow>& rows, const RunConfig& config) {
  std::vector<std::function<json()>> jobs;
  for (const Setting& setting : settings) {
    const bool with_limits = &setting == &settings.front();
    jobs.push_back([&, with_limits] { return sizes_of(setting, rows, config, with_limits); });
  }
  std::vector<Sizes> sizes;
  for (const json& object : run_jobs(jobs)) sizes.push_back(to_sizes(object));
  return sizes;
}

void find_speeds(const std::vector<Setting>& settings, const Workload& compared,
                 const std::vector<SizedModel>& models, const RunConfig& config,
                 CapacityAnswer& capacity) {
  std::vector<std::function<json()>> jobs;
  for (const SizedModel& model : models) {
    jobs.push_back([&] { return frontier_of(model, settings.front(), config); });
  }
  for (const Setting& setting : settings) {
    jobs.push_back([&] { return speed_of(setting, compared, config); });
  }
  const auto results = run_jobs(jobs);
  for (std::size_t i = 0; i < models.size(); ++i) {
    FrontierModel frontier{models[i], to_batch(results[i]["largest"]), {}};
    for (const json& point : results[i]["points"]) {
      frontier.points.push_back({point["batch"].get<std::int64_t>(), to_speed(point["speed"])});
    }
    capacity.frontier.push_back(std::move(frontier));
  }
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const json& result = results[models.size() + i];
    Variant& variant = i == 0 ? capacity.as_it_is : capacity.variants[i - 1];
    variant.batch = result["batch"].get<std::int64_t>();
    variant.speed = to_speed(result["speed"]);
  }
}

}  // namespace offstage::cli
