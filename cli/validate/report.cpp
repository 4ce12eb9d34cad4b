#include "cli/validate/report.h"

#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/table.h"
#include "platform/format.h"

namespace offstage::cli {
namespace {

using calibration::Compared;
using calibration::ErrorSummary;
using calibration::Prediction;
using calibration::RowResult;
using calibration::SetResult;
using nlohmann::json;
using platform::Bytes;
using platform::percent_text;
using platform::Seconds;
using platform::to_text;

std::string signed_percent(double fraction) {
  return (fraction < 0.0 ? "-" : "+") + percent_text(std::abs(fraction));
}

const Prediction& prediction_of(const ValidationAnswer& answer, const RowResult& result) {
  return *answer.answers[*result.answer].prediction;
}

// The lines of the fullest pool of the kind that is short, or else of the first GPU.
const scheduler::PoolLedger& telling_pool(const Prediction& prediction) {
  const auto worst = prediction.memory.worst();
  return prediction.memory.pools[worst.value_or(0)];
}

json kinds_json(const Prediction& prediction) {
  json kinds = json::object();
  if (!prediction.step) return kinds;
  for (const auto& kind : prediction.step->kinds) {
    kinds[std::string(scheduler::to_string(kind.kind))] = kind.busy.value;
  }
  return kinds;
}

json memory_json(const Prediction& prediction) {
  const auto& pool = telling_pool(prediction);
  json lines = json::array();
  for (const auto& line : pool.lines) {
    lines.push_back({{"what", line.what}, {"bytes", line.bytes.value}});
  }
  return {{"pool", pool.name}, {"capacity_bytes", pool.capacity.value}, {"lines", lines}};
}

json compared_json(const Compared& compared) {
  return {{"measured", compared.measured},
          {"predicted", compared.predicted},
          {"error", compared.error()}};
}

json worst_json(const ValidationAnswer& answer, const SetResult& set) {
  const RowResult& result = answer.validation.rows[set.steps.worst];
  const Prediction& prediction = prediction_of(answer, result);
  json object = compared_json(*result.step);
  object["id"] = answer.rows[result.row].id;
  object["kinds_s"] = kinds_json(prediction);
  object["memory"] = memory_json(prediction);
  return object;
}

json summary_json(const ValidationAnswer& answer, const ErrorSummary& summary) {
  if (summary.count == 0) return nullptr;
  return {{"count", summary.count},
          {"mape", summary.mape},
          {"median", summary.median},
          {"p90", summary.p90},
          {"bias", summary.bias},
          {"worst", answer.rows[answer.validation.rows[summary.worst].row].id}};
}

json set_json(const ValidationAnswer& answer, const SetResult& set) {
  json refused = json::array();
  for (const auto& [reason, rows] : set.refused) {
    refused.push_back({{"reason", reason}, {"rows", rows}});
  }
  const auto& outcomes = set.outcomes;
  json object{{"name", set.name},
              {"rows", set.rows},
              {"answered", set.answered},
              {"refused", refused},
              {"steps", set.steps.count},
              {"mape", nullptr},
              {"median", nullptr},
              {"p90", nullptr},
              {"bias", nullptr},
              {"worst", nullptr},
              {"gpu_memory", summary_json(answer, set.gpu_memory)},
              {"host_memory", summary_json(answer, set.host_memory)},
              {"outcomes",
               {{"ran_fits", outcomes.ran_fits},
                {"ran_too_large", outcomes.ran_too_large},
                {"failed_fits", outcomes.failed_fits},
                {"failed_too_large", outcomes.failed_too_large}}},
              {"largest", {{"rows", set.largest}, {"right", set.largest_right}}},
              {"ranking", {{"pairs", set.ranking.pairs}, {"right", set.ranking.right}}},
              {"interval",
               {{"rows", set.coverage.count},
                {"inside", set.coverage.inside},
                {"median_width", set.coverage.median_width}}}};
  if (set.steps.count > 0) {
    object["mape"] = set.steps.mape;
    object["median"] = set.steps.median;
    object["p90"] = set.steps.p90;
    object["bias"] = set.steps.bias;
    object["worst"] = worst_json(answer, set);
  }
  return object;
}

std::string step_table(const ValidationAnswer& answer) {
  Table table({"set", "rows", "answered", "steps", "mean error", "median", "9 of 10", "bias",
               "worst", "its row"},
              {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right, Align::right, Align::right, Align::left});
  for (const SetResult& set : answer.validation.sets) {
    std::vector<std::string> cells{set.name, fmt::to_string(set.rows), fmt::to_string(set.answered),
                                   fmt::to_string(set.steps.count)};
    if (set.steps.count == 0) {
      cells.resize(10);
    } else {
      const RowResult& worst = answer.validation.rows[set.steps.worst];
      for (const double value : {set.steps.mape, set.steps.median, set.steps.p90}) {
        cells.push_back(percent_text(value));
      }
      cells.push_back(signed_percent(set.steps.bias));
      cells.push_back(signed_percent(worst.step->error()));
      cells.push_back(answer.rows[worst.row].id);
    }
    table.add(cells);
  }
  return table.text();
}

std::string summary_text(const ErrorSummary& summary) {
  if (summary.count == 0) return "";
  return fmt::format("{} of {}", percent_text(summary.mape), summary.count);
}

std::string part_text(std::size_t part, std::size_t whole) {
  return whole == 0 ? "" : fmt::format("{} of {}", part, whole);
}

std::string other_table(const ValidationAnswer& answer) {
  Table table({"set", "GPU memory", "CPU memory", "fits or not, right", "ran, said too large",
               "failed, said to fit", "largest right", "pairs in order", "in interval",
               "its width"});
  for (const SetResult& set : answer.validation.sets) {
    const auto& outcomes = set.outcomes;
    if (set.answered == 0) continue;
    table.add({set.name, summary_text(set.gpu_memory), summary_text(set.host_memory),
               part_text(outcomes.ran_fits + outcomes.failed_too_large, outcomes.count()),
               fmt::to_string(outcomes.ran_too_large), fmt::to_string(outcomes.failed_fits),
               part_text(set.largest_right, set.largest),
               part_text(set.ranking.right, set.ranking.pairs),
               part_text(set.coverage.inside, set.coverage.count),
               set.coverage.count == 0 ? "" : percent_text(set.coverage.median_width)});
  }
  return table.text();
}

std::string worst_text(const ValidationAnswer& answer, const SetResult& set) {
  const RowResult& result = answer.validation.rows[set.steps.worst];
  const Prediction& prediction = prediction_of(answer, result);
  std::string text = fmt::format("  {}: measured {}, predicted {} (", answer.rows[result.row].id,
                                 to_text(Seconds{result.step->measured}),
                                 to_text(Seconds{result.step->predicted}));
  for (const auto& kind : prediction.step->kinds) {
    text += fmt::format("{}{} {}", text.ends_with('(') ? "" : ", ", scheduler::to_string(kind.kind),
                        to_text(kind.busy));
  }
  return text + " on the first GPU)\n";
}

std::string refusals_text(const ValidationAnswer& answer) {
  std::string text;
  for (const SetResult& set : answer.validation.sets) {
    for (const auto& [reason, rows] : set.refused) {
      text += fmt::format("  {}, {} rows: {}\n", set.name, rows, reason);
    }
  }
  return text.empty() ? "" : "\nNot answered:\n" + text;
}

}  // namespace

std::string validation_text(const ValidationAnswer& answer) {
  std::string text = step_table(answer) + "\n" + other_table(answer) + "\nWorst steps:\n";
  for (const SetResult& set : answer.validation.sets) {
    if (set.steps.count > 0) text += worst_text(answer, set);
  }
  text += refusals_text(answer);
  return text + fmt::format("\n{} rows in {}. Errors are (predicted - measured) / measured.\n",
                            answer.rows.size(), to_text(answer.wall));
}

json validation_json(const ValidationAnswer& answer) {
  json sets = json::array();
  for (const SetResult& set : answer.validation.sets) sets.push_back(set_json(answer, set));
  return {{"sets", sets}, {"rows", answer.rows.size()}, {"wall_s", answer.wall.value}};
}

}  // namespace offstage::cli
