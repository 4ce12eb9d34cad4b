#include "cli/capacity/report.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/table.h"
#include "platform/format.h"
#include "scheduler/plan_file.h"

namespace offstage::cli {
namespace {

using nlohmann::json;
using platform::count_text;
using platform::to_text;
using scheduler::FitLimit;
using scheduler::Speed;

std::string parameters_text(const SizedModel& model) {
  return count_text(static_cast<double>(model.parameters));
}

double tokens_per_s(const SizedModel& model, std::int64_t batch, const Speed& speed) {
  return static_cast<double>(batch * model.workload.sequence_length) / speed.step.value;
}

std::string limit_text(const std::optional<FitLimit>& limit, const std::string& otherwise) {
  if (!limit) return otherwise;
  return fmt::format("{}: {}, short by {}", limit->pool, limit->line, to_text(limit->lacks));
}

// 1.2 over 1.0 is "+20 %".
std::string gain_text(double now, double before) {
  if (!(before > 0.0)) return "";
  return fmt::format("{:+.0f} %", 100.0 * (now / before - 1.0));
}

const SizedModel& largest_model(const CapacityAnswer& capacity) {
  return *capacity.rows[*capacity.best_row].largest;
}

std::string rows_text(const CapacityAnswer& capacity) {
  Table table({"row", "largest that fits", "parameters", "layers", "hidden", "the next lacks"},
              {Align::left, Align::left, Align::right, Align::right, Align::right, Align::left});
  for (const RowAnswer& row : capacity.rows) {
    const std::string end = "nothing: the row ends";
    if (!row.largest) {
      table.add({row.name, "none", "", "", "",
                 row.left_out.empty() ? limit_text(row.limit, end) : row.left_out});
      continue;
    }
    const auto& model = row.largest->workload.model;
    table.add({row.name, model.name, parameters_text(*row.largest), std::to_string(model.layers),
               std::to_string(model.hidden), limit_text(row.limit, end)});
  }
  return table.text();
}

std::string largest_text(const CapacityAnswer& capacity) {
  if (!capacity.best_row) return "\nNot even the smallest model of these rows fits.\n";
  const SizedModel& model = largest_model(capacity);
  const auto& metrics = capacity.prediction->metrics;
  std::string text = fmt::format(
      "\nLargest model: {}, {} parameters\n"
      "  step {} at {} sequences, {:.0f} tokens/s; bound {} by {}, efficiency {}; plan {}\n",
      model.workload.model.name, parameters_text(model), to_text(metrics.step),
      model.workload.global_batch, metrics.tokens_per_s, to_text(metrics.bound.seconds),
      metrics.bound.by, platform::percent_text(metrics.efficiency),
      scheduler::plan_hash(capacity.plan->plan));
  for (const Variant& variant : capacity.variants) {
    if (variant.change != kNvmeChange || !variant.largest) continue;
    text += fmt::format("With NVMe: {} parameters ({})\n", parameters_text(*variant.largest),
                        variant.largest->workload.model.name);
  }
  return text;
}

std::string batch_text(const CapacityAnswer& capacity) {
  const auto& model = capacity.asked.workload.model;
  const auto& largest = capacity.largest_batch;
  if (largest.batch == 0) {
    return fmt::format("Largest batch of {}: none; {}\n", model.name,
                       limit_text(largest.limit, ""));
  }
  const std::string end = fmt::format("the search ends at {} tokens a step, memory does not",
                                      count_text(static_cast<double>(scheduler::kMostTokens)));
  return fmt::format("Largest batch of {}: {} sequences, {} tokens; {}\n", model.name,
                     largest.batch,
                     count_text(static_cast<double>(largest.batch) *
                                static_cast<double>(capacity.asked.workload.sequence_length)),
                     largest.limit ? "the next lacks " + limit_text(largest.limit, "") : end);
}

std::string frontier_text(const CapacityAnswer& capacity) {
  Table table({"model", "parameters", "batch", "tokens/s", "step", "busiest", "batch ends"},
              {Align::left, Align::right, Align::right, Align::right, Align::right, Align::left,
               Align::left});
  for (const FrontierModel& frontier : capacity.frontier) {
    for (const FrontierPoint& point : frontier.points) {
      const bool first = &point == &frontier.points.front();
      const bool last = &point == &frontier.points.back();
      std::vector<std::string> cells{first ? frontier.model.workload.model.name : "",
                                     first ? parameters_text(frontier.model) : "",
                                     std::to_string(point.batch)};
      if (point.speed) {
        cells.push_back(
            fmt::format("{:.0f}", tokens_per_s(frontier.model, point.batch, *point.speed)));
        cells.push_back(to_text(point.speed->step));
        cells.push_back(
            fmt::format("{} {}", point.speed->bound.by,
                        platform::percent_text(point.speed->bound.seconds / point.speed->step)));
      } else {
        cells.insert(cells.end(), {"", "", "no plan found"});
      }
      cells.push_back(last ? limit_text(frontier.largest.limit, "at the cap of tokens") : "");
      table.add(std::move(cells));
    }
  }
  return table.empty() ? "" : "\nModel size against batch, and how fast\n" + table.text();
}

std::string variants_text(const CapacityAnswer& capacity) {
  const Variant& base = capacity.as_it_is;
  Table table({"with", "largest model", "", "largest batch", "", "tokens/s", "", "note"},
              {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right, Align::left});
  const auto add = [&](const Variant& variant, bool changed) {
    const auto parameters = [](const Variant& of) {
      return of.largest ? static_cast<double>(of.largest->parameters) : 0.0;
    };
    const auto speed = [&](const Variant& of) {
      return of.speed ? tokens_per_s(capacity.asked, of.batch, *of.speed) : 0.0;
    };
    const auto gain = [&](double now, double before) {
      return changed && now > 0.0 ? gain_text(now, before) : std::string();
    };
    table.add(
        {variant.change, count_text(parameters(variant)),
         gain(parameters(variant), parameters(base)), std::to_string(variant.largest_batch),
         gain(static_cast<double>(variant.largest_batch), static_cast<double>(base.largest_batch)),
         variant.speed ? fmt::format("{:.0f}", speed(variant)) : "",
         gain(speed(variant), speed(base)), variant.note});
  };
  add(base, false);
  for (const Variant& variant : capacity.variants) add(variant, true);
  return fmt::format("\nWhat more would buy (batch of {}, speed of {})\n",
                     capacity.asked.workload.model.name, capacity.compared) +
         table.text();
}

json limit_json(const std::optional<FitLimit>& limit) {
  if (!limit) return {};
  return {{"pool", limit->pool},
          {"line", limit->line},
          {"knob", limit->knob.empty() ? json() : json(limit->knob)},
          {"lacks_bytes", limit->lacks.value}};
}

json model_json(const SizedModel& model) {
  return {{"name", model.workload.model.name},
          {"parameters", model.parameters},
          {"layers", model.workload.model.layers},
          {"hidden", model.workload.model.hidden},
          {"ladder", model.row.empty() ? json() : json(model.row)}};
}

json speed_json(const SizedModel& model, std::int64_t batch, const std::optional<Speed>& speed) {
  json object{
      {"step_s", nullptr}, {"tokens_per_s", nullptr}, {"bound_s", nullptr}, {"bound_by", nullptr}};
  if (!speed) return object;
  object["step_s"] = speed->step.value;
  object["tokens_per_s"] = tokens_per_s(model, batch, *speed);
  object["bound_s"] = speed->bound.seconds.value;
  object["bound_by"] = speed->bound.by;
  return object;
}

json largest_json(const CapacityAnswer& capacity) {
  if (!capacity.best_row) return {};
  const auto& metrics = capacity.prediction->metrics;
  json object = model_json(largest_model(capacity));
  object["global_batch"] = largest_model(capacity).workload.global_batch;
  object["step_s"] = metrics.step.value;
  object["tokens_per_s"] = metrics.tokens_per_s;
  object["mfu"] = metrics.mfu;
  object["bound_s"] = metrics.bound.seconds.value;
  object["bound_by"] = metrics.bound.by;
  object["efficiency"] = metrics.efficiency;
  object["plan_hash"] = scheduler::plan_hash(capacity.plan->plan);
  object["limit"] = limit_json(capacity.rows[*capacity.best_row].limit);
  return object;
}

json points_json(const CapacityAnswer& capacity) {
  json points = json::array();
  for (const FrontierModel& frontier : capacity.frontier) {
    for (const FrontierPoint& point : frontier.points) {
      json object = model_json(frontier.model);
      object.update(speed_json(frontier.model, point.batch, point.speed));
      object["global_batch"] = point.batch;
      object["max_batch"] = frontier.largest.batch;
      object["limit"] = limit_json(frontier.largest.limit);
      points.push_back(std::move(object));
    }
  }
  return points;
}

json ladders_json(const CapacityAnswer& capacity) {
  json ladders = json::array();
  for (const RowAnswer& row : capacity.rows) {
    ladders.push_back({{"ladder", row.name},
                       {"source", row.source},
                       {"largest", row.largest ? model_json(*row.largest) : json()},
                       {"limit", limit_json(row.limit)},
                       {"left_out", row.left_out.empty() ? json() : json(row.left_out)}});
  }
  return ladders;
}

json more_json(const CapacityAnswer& capacity) {
  const Variant& base = capacity.as_it_is;
  json more = json::array();
  for (const Variant& variant : capacity.variants) {
    json object = speed_json(capacity.asked, variant.batch, variant.speed);
    object["global_batch"] = variant.batch;
    object["change"] = variant.change;
    object["note"] = variant.note;
    object["max_model"] = variant.largest ? model_json(*variant.largest) : json();
    object["max_batch"] = variant.largest_batch;
    object["max_batch_gain"] = variant.largest_batch - base.largest_batch;
    const auto parameters = [](const Variant& of) {
      return of.largest ? of.largest->parameters : std::int64_t{0};
    };
    object["parameters_gain"] = parameters(variant) - parameters(base);
    object["tokens_per_s_gain"] = nullptr;
    if (variant.speed && base.speed) {
      object["tokens_per_s_gain"] = tokens_per_s(capacity.asked, variant.batch, *variant.speed) -
                                    tokens_per_s(capacity.asked, base.batch, *base.speed);
    }
    more.push_back(std::move(object));
  }
  return more;
}

}  // namespace

std::string describe_capacity(const CapacityAnswer& capacity) {
  const auto& workload = capacity.asked.workload;
  std::string text =
      fmt::format("Capacity of {} at {} sequences of {} tokens a step, without NVMe\n",
                  capacity.machine, workload.global_batch, workload.sequence_length) +
      rows_text(capacity) + largest_text(capacity) + batch_text(capacity);
  if (!capacity.best_row) return text;
  return text + frontier_text(capacity) + variants_text(capacity);
}

json capacity_json(const CapacityAnswer& capacity) {
  const auto limit =
      capacity.best_row ? capacity.rows[*capacity.best_row].limit : capacity.largest_batch.limit;
  return {{"max_model", largest_json(capacity)},
          {"max_batch", capacity.largest_batch.batch},
          {"max_batch_limit", limit_json(capacity.largest_batch.limit)},
          {"max_tokens_per_step_searched", scheduler::kMostTokens},
          {"limited_by", limit ? json(limit->pool) : json()},
          {"limiting_line", limit ? json(limit->line) : json()},
          {"points", points_json(capacity)},
          {"ladders", ladders_json(capacity)},
          {"more", more_json(capacity)},
          {"compared", capacity.compared}};
}

}  // namespace offstage::cli
