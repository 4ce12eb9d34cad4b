#include "cli/capacity/answer.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/capacity/jobs.h"
#include "cli/capacity/rows.h"
#include "cli/output.h"
#include "platform/changed_machine.h"
#include "platform/error.h"
#include "sim/evaluate.h"
#include "sim/process_pool.h"
#include "workloads/ladder.h"
#include "workloads/layer_table.h"

namespace offstage::cli {
namespace {

using platform::PoolKind;
using scheduler::RunConfig;
using scheduler::StrategyRequest;

// Rungs of the family's ladder on the frontier: the largest that fit.
constexpr std::int64_t kFrontierRungs = 2;

// Capacity asks about many models. A knob that counts the sub-models of one of them can't be kept.
void check_request(const StrategyRequest& request) {
  const auto refuse = [](const char* knob) {
    throw Error(ErrorCode::bad_input,
                fmt::format("{} counts sub-models of one model, and capacity looks at many: leave "
                            "it open, or 0",
                            knob));
  };
  if (request.cuts) {
    throw Error(ErrorCode::bad_input,
                "layers_per_submodel lists the cuts of one model, and capacity looks at many: give "
                "one number, or leave it open");
  }
  if (request.resident_state.value_or(0) > 0) refuse("resident_state");
  if (request.resident_weights.value_or(0) > 0) refuse("resident_weights");
  if (request.kept_activations.value_or(0) > 0) refuse("kept_activations");
  if (request.nvme_state.value_or(0) > 0) refuse("nvme_state");
}

std::vector<Setting> settings_of(const RunConfig& config) {
  const auto& machine = config.machine;
  StrategyRequest request = config.strategy;
  request.nvme_state = 0;
  std::vector<Setting> settings;
  const auto add = [&](std::string change, std::string note, platform::Machine changed) {
    settings.push_back({std::move(change), std::move(note), std::move(changed), request, true});
  };
  add("as it is", "", machine);
  add("CPU memory x 2", "", platform::with_memory(machine, PoolKind::host, 2));
  add("GPU memory x 2", "", platform::with_memory(machine, PoolKind::gpu, 2));
  if (auto more = platform::with_another_gpu(machine)) {
    add("one more GPU",
        fmt::format("like {}, at its switch; collectives last as long as before",
                    machine.gpus.back().name),
        std::move(*more));
  }
  if (auto faster = platform::with_pcie(machine, 2)) add("PCIe x 2", "", std::move(*faster));
  if (!machine.drives.empty() && !config.strategy.nvme_state) {
    request.nvme_state.reset();
    add(kNvmeChange,
        fmt::format("the machine's {} drives hold what fits nowhere else", machine.drives.size()),
        machine);
    settings.back().changes_speed = false;
  }
  return settings;
}

SizedModel sized(workloads::Workload workload, const std::string& row) {
  const std::int64_t parameters = workloads::count_parameters(workload.model);
  return {std::move(workload), row, parameters};
}

std::optional<SizedModel> largest_of(const NamedRow& row, const LargestOfRow& found) {
  if (!found.index) return std::nullopt;
  return sized(row.row.model(*found.index), row.name);
}

std::vector<RowAnswer> row_answers(const std::vector<NamedRow>& rows, const Sizes& sizes) {
  std::vector<RowAnswer> answers;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    answers.push_back({rows[i].name, rows[i].source, largest_of(rows[i], sizes.rows[i]),
                       sizes.rows[i].limit, rows[i].left_out});
  }
  return answers;
}

std::int64_t size_of(const RowAnswer& row) { return row.largest ? row.largest->parameters : 0; }

// Finds a plan for the largest model, or should the search find none for it, for the next.
void plan_largest(const RunConfig& config, const StrategyRequest& request,
                  CapacityAnswer& capacity) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < capacity.rows.size(); ++i) {
    if (capacity.rows[i].largest) order.push_back(i);
  }
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return size_of(capacity.rows[a]) > size_of(capacity.rows[b]);
  });
  const auto evaluate = scheduler::Evaluate(simulator_of(config.profile, sim::default_workers()));
  for (const std::size_t row : order) {
    const auto& workload = capacity.rows[row].largest->workload;
    auto result =
        scheduler::choose_plan({config.machine, workload, config.profile, request}, evaluate);
    if (!result.fits) continue;
    capacity.best_row = row;
    capacity.prediction = simulate_plan(result.plan, config.profile, sim::kSimulatedSteps);
    capacity.plan = std::move(result);
    return;
  }
}

// The config's model, the largest rungs of its family and the ends of depth and shape.
std::vector<SizedModel> frontier_models(const CapacityAnswer& capacity,
                                        const std::vector<NamedRow>& rows) {
  std::vector<SizedModel> models;
  std::set<std::int64_t> seen;
  const auto add = [&](const SizedModel& model) {
    if (seen.insert(model.parameters).second) models.push_back(model);
  };
  const auto* ladder = workloads::ladder_of(capacity.asked.workload.model);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& largest = capacity.rows[i].largest;
    if (!largest) continue;
    if (ladder != nullptr && rows[i].name == ladder->name) {
      for (std::int64_t k = rows[i].row.first, left = kFrontierRungs; k <= rows[i].row.last; ++k) {
        const SizedModel rung = sized(rows[i].row.model(rows[i].row.last - k), rows[i].name);
        if (rung.parameters > largest->parameters || left-- <= 0) continue;
        add(rung);
      }
    }
    if (rows[i].name == kDepthRow || rows[i].name == kShapeRow) add(*largest);
  }
  if (capacity.largest_batch.batch > 0) add(capacity.asked);
  std::ranges::stable_sort(models, {}, &SizedModel::parameters);
  return models;
}

void add_variants(const std::vector<Setting>& settings, const std::vector<NamedRow>& rows,
                  const std::vector<Sizes>& sizes, CapacityAnswer& capacity) {
  for (std::size_t i = 0; i < settings.size(); ++i) {
    Variant variant{settings[i].change, settings[i].note, {}, sizes[i].batch.batch, 0, {}};
    for (std::size_t k = 0; k < rows.size(); ++k) {
      auto largest = largest_of(rows[k], sizes[i].rows[k]);
      if (!largest) continue;
      if (!variant.largest || largest->parameters > variant.largest->parameters) {
        variant.largest = std::move(largest);
      }
    }
    if (i == 0) {
      capacity.as_it_is = std::move(variant);
    } else {
      capacity.variants.push_back(std::move(variant));
    }
  }
}

}  // namespace

CapacityAnswer find_capacity(const RunConfig& config, const std::string& models) {
  check_request(config.strategy);
  const auto rows = capacity_rows(config.workload, models);
  const auto settings = settings_of(config);
  CapacityAnswer capacity;
  capacity.machine = config.machine.name;
  capacity.asked = sized(config.workload, "");
  show_progress("how large ...");
  const auto sizes = find_sizes(settings, rows, config);
  capacity.largest_batch = sizes.front().batch;
  capacity.rows = row_answers(rows, sizes.front());
  add_variants(settings, rows, sizes, capacity);
  show_progress("a plan for the largest ...");
  plan_largest(config, settings.front().request, capacity);
  if (capacity.best_row) {
    show_progress("how fast ...");
    const bool asked_fits = sizes.front().asked_fits;
    const SizedModel& compared =
        asked_fits ? capacity.asked : *capacity.rows[*capacity.best_row].largest;
    capacity.compared = compared.workload.model.name;
    find_speeds(settings, compared.workload, frontier_models(capacity, rows), config, capacity);
  }
  show_progress("");
  return capacity;
}

}  // namespace offstage::cli
