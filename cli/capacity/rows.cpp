#include "cli/capacity/rows.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "workloads/ladder.h"
#include "workloads/model_library.h"
#include "workloads/scaled_model.h"

namespace offstage::cli {
namespace {

using workloads::Workload;

NamedRow published_row(const workloads::Ladder& ladder, const Workload& workload,
                       const std::string& models_directory) {
  std::vector<Workload> rungs;
  std::vector<std::string> too_short;
  for (const auto name : ladder.models) {
    workloads::ModelConfig config = workloads::load_model(std::string(name), models_directory);
    const workloads::Model& model = config.model;
    if (model.positions == workloads::Positions::learned &&
        model.max_positions < workload.sequence_length) {
      too_short.push_back(model.name);
      continue;
    }
    Workload rung = workload;
    rung.model = std::move(config.model);
    rung.model_config = std::move(config.json);
    rungs.push_back(std::move(rung));
  }
  NamedRow row{std::string(ladder.name), std::string(ladder.source), {}, {}};
  if (!too_short.empty()) {
    row.left_out = fmt::format("{} learned fewer than {} positions", fmt::join(too_short, ", "),
                               workload.sequence_length);
  }
  row.row.first = 0;
  row.row.last = static_cast<std::int64_t>(rungs.size()) - 1;
  row.row.model = [rungs = std::move(rungs)](std::int64_t index) {
    return rungs[static_cast<std::size_t>(index)];
  };
  return row;
}

NamedRow depth_row(const Workload& workload) {
  const std::int64_t last = std::max(kDeepest, workload.model.layers);
  return {kDepthRow,
          fmt::format("{} with any number of layers up to {}", workload.model.name, last),
          {.first = 1,
           .last = last,
           .model = [workload](std::int64_t layers) { return with_layers(workload, layers); }},
          {}};
}

NamedRow shape_row(const Workload& workload) {
  const workloads::Model& model = workload.model;
  const std::int64_t step = workloads::width_step(model);
  const std::int64_t deepest = std::max(kDeepest, model.layers);
  return {kShapeRow,
          fmt::format("{} with hidden / layers kept at {} / {}, in widths of {}", model.name,
                      model.hidden, model.layers, step),
          {.first = 1,
           .last = std::max<std::int64_t>(1, deepest * model.hidden / model.layers / step),
           .model = [workload, step](std::int64_t k) { return with_width(workload, k * step); }},
          {}};
}

}  // namespace

std::vector<NamedRow> capacity_rows(const Workload& workload, const std::string& models_directory) {
  std::vector<NamedRow> rows;
  for (const auto& ladder : workloads::published_ladders()) {
    rows.push_back(published_row(ladder, workload, models_directory));
  }
  rows.push_back(depth_row(workload));
  rows.push_back(shape_row(workload));
  return rows;
}

}  // namespace offstage::cli
