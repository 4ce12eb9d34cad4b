#include "calibration/ranking.h"

#include <map>
#include <string>

#include <fmt/format.h>

namespace offstage::calibration {
namespace {

std::string text_of(const std::optional<std::int64_t>& value) {
  return value ? fmt::to_string(*value) : "?";
}

template <typename Enum>
int number_of(const std::optional<Enum>& value) {
  return value ? static_cast<int>(*value) : -1;
}

// What two rows must share to be compared.
std::string task_of(const ReferenceRow& row) {
  return fmt::format("{}/{}/{}/{}/{}/{}/{}/{}", row.machine.gpu, row.machine.gpus,
                     row.machine.host_memory ? row.machine.host_memory->value : 0,
                     text_of(row.model.layers), text_of(row.model.hidden), text_of(row.model.heads),
                     text_of(row.sequence_length), text_of(row.global_batch));
}

// What must differ.
std::string way_of(const ReferenceRow& row) {
  const auto& parallel = row.parallel;
  return fmt::format("{}/{}/{}/{}/{}/{}/{}/{}/{}/{}", row.system, text_of(parallel.data),
                     text_of(parallel.tensor), text_of(parallel.pipeline),
                     number_of(parallel.sharding), number_of(parallel.sequence_parallel),
                     number_of(row.offload.parameters), number_of(row.offload.optimizer),
                     number_of(row.offload.activations), number_of(row.recompute));
}

// Work in a second, in the same unit for all rows of a task.
double measured_pace(const ReferenceRow& row) {
  if (row.measured.step) return 1.0 / row.measured.step->value;
  return row.measured.throughput ? row.measured.throughput->value : 0.0;
}

double predicted_pace(const ReferenceRow& row, const RowResult& result) {
  return row.measured.step ? 1.0 / result.step->predicted : result.tokens_per_s;
}

}  // namespace

Ranking rank_pairs(const std::vector<ReferenceRow>& rows, const std::vector<RowResult>& results,
                   const std::vector<std::size_t>& indices) {
  std::map<std::string, std::vector<std::size_t>> tasks;
  for (const std::size_t index : indices) {
    if (results[index].step) tasks[task_of(rows[index])].push_back(index);
  }
  Ranking ranking;
  for (const auto& [task, members] : tasks) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      for (std::size_t j = i + 1; j < members.size(); ++j) {
        const ReferenceRow &a = rows[members[i]], &b = rows[members[j]];
        if (a.measured.step.has_value() != b.measured.step.has_value()) continue;
        const double measured = measured_pace(a) - measured_pace(b);
        if (way_of(a) == way_of(b) || measured == 0.0) continue;
        const double predicted =
            predicted_pace(a, results[members[i]]) - predicted_pace(b, results[members[j]]);
        ++ranking.pairs;
        if ((measured > 0.0) == (predicted > 0.0)) ++ranking.right;
      }
    }
  }
  return ranking;
}

}  // namespace offstage::calibration
