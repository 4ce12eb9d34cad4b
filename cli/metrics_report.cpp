#include "cli/metrics_report.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/table.h"
#include "platform/format.h"
#include "scheduler/ledger_groups.h"

namespace offstage::cli {

using nlohmann::json;
using platform::percent_text;
using platform::to_text;
using scheduler::join_names;
using scheduler::Metrics;

namespace {

// Engines that do the same for different devices share a line: eight GPUs rarely differ.
std::string engine_table(const Metrics& metrics) {
  struct Group {
    std::vector<std::string> names;
    double least = std::numeric_limits<double>::infinity(), most = 0.0;
    platform::Seconds busy;
  };
  std::map<std::string, Group> groups;
  std::vector<std::string> order;
  for (const auto& engine : metrics.engines) {
    const std::string kind = engine.engine.substr(engine.engine.find('.') + 1);
    if (!groups.contains(kind)) order.push_back(kind);
    Group& group = groups[kind];
    group.names.push_back(engine.engine);
    group.least = std::min(group.least, engine.utilisation);
    group.most = std::max(group.most, engine.utilisation);
    group.busy = std::max(group.busy, engine.busy);
  }
  Table table({"engine", "busiest", "utilisation"});
  for (const std::string& kind : order) {
    const Group& group = groups[kind];
    if (group.busy.value == 0.0) continue;  // such as drives the plan has no use for
    const std::string least = percent_text(group.least), most = percent_text(group.most);
    table.add({join_names(group.names), to_text(group.busy),
               least == most ? most : fmt::format("{} to {}", least, most)});
  }
  return table.text();
}

// The links that carry most; the rest is in --json.
std::string link_table(const Metrics& metrics) {
  constexpr std::size_t kShown = 8;
  std::vector<scheduler::LinkUse> links;
  for (const auto& link : metrics.links) {
    if (link.utilisation > 0.0) links.push_back(link);
  }
  std::ranges::stable_sort(links, std::ranges::greater(), &scheduler::LinkUse::utilisation);
  if (links.size() > kShown) links.resize(kShown);
  Table table({"link", "utilisation"});
  for (const auto& link : links) table.add({link.link, percent_text(link.utilisation)});
  return table.empty() ? "" : "\n" + table.text();
}

// Pools that are alike share a line.
std::string memory_table(const Metrics& metrics) {
  Table table({"memory", "peak", "capacity"});
  for (std::size_t i = 0; i < metrics.memory.size();) {
    const auto& pool = metrics.memory[i];
    std::vector<std::string> names;
    for (; i < metrics.memory.size() && metrics.memory[i].peak == pool.peak &&
           metrics.memory[i].capacity == pool.capacity;
         ++i) {
      names.push_back(metrics.memory[i].pool);
    }
    if (pool.peak.value == 0) continue;  // such as a drive the plan has no use for
    table.add({join_names(names), to_text(pool.peak), to_text(pool.capacity)});
  }
  return "\n" + table.text();
}

}  // namespace

std::string describe_metrics(const Metrics& metrics) {
  return fmt::format(
             "  step         {} (simulated), {:.0f} tokens/s, MFU {}\n"
             "  bound        {}: no schedule beats it; set by {}\n"
             "  efficiency   {} of the bound's pace\n\n",
             to_text(metrics.step), metrics.tokens_per_s, percent_text(metrics.mfu),
             to_text(metrics.bound.seconds), metrics.bound.by, percent_text(metrics.efficiency)) +
         engine_table(metrics) + link_table(metrics) + memory_table(metrics);
}

json metrics_json(const Metrics& metrics) {
  json engines = json::array(), links = json::array(), memory = json::array();
  for (const auto& engine : metrics.engines) {
    engines.push_back({{"engine", engine.engine},
                       {"busy_s", engine.busy.value},
                       {"utilisation", engine.utilisation}});
  }
  for (const auto& link : metrics.links) {
    links.push_back(
        {{"link", link.link}, {"bytes", link.bytes}, {"utilisation", link.utilisation}});
  }
  for (const auto& pool : metrics.memory) {
    memory.push_back({{"pool", pool.pool},
                      {"peak_bytes", pool.peak.value},
                      {"capacity_bytes", pool.capacity.value}});
  }
  return {{"step_s", metrics.step.value},
          {"tokens_per_s", metrics.tokens_per_s},
          {"mfu", metrics.mfu},
          {"bound_s", metrics.bound.seconds.value},
          {"bound_by", metrics.bound.by},
          {"efficiency", metrics.efficiency},
          {"engines", engines},
          {"links", links},
          {"memory", memory}};
}

}  // namespace offstage::cli
