#include "scheduler/plan_file.h"

#include <cstdint>
#include <fstream>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <xxhash.h>

#include "platform/document.h"
#include "platform/error.h"
#include "scheduler/strategy_knobs.h"

namespace offstage::scheduler {
namespace {

using nlohmann::json;

// Raised whenever a reader of the old form would misread the new one.
constexpr int kPlanVersion = 1;

template <typename T>
json knob_to_json(const T& knob) {
  if constexpr (std::is_enum_v<T>) {
    return to_string(knob);
  } else {
    return knob;
  }
}

json strategy_to_json(const Strategy& strategy) {
  json packs = strategy.layers_per_submodel;
  if (!strategy.cuts.empty()) packs = strategy.cuts;
  const Split split = strategy.tensor_ways == 1 ? Split::batch : Split::tensor;
  json object{{"split", to_string(split)},
              {"layers_per_submodel", packs},
              {"moments", to_string(strategy.moments)},
              {"clipping", to_string(strategy.clipping)}};
  // Left out of a plan with even ones, as before there were others.
  if (!strategy.shares.empty()) object["shares"] = strategy.shares;
  const StrategyRequest unused;
  for_each_knob(strategy, unused, [&object](const char* name, const auto& knob, const auto&) {
    object[name] = knob_to_json(knob);
  });
  return object;
}

json workload_to_json(const workloads::Workload& workload) {
  return {{"model", json::parse(workload.model_config)},
          {"sequence_length", workload.sequence_length},
          {"global_batch", workload.global_batch},
          {"precision", workload.precision == platform::Precision::bf16 ? "bf16" : "f32"},
          {"optimizer", "adamw"}};
}

json submodels_to_json(const Plan& plan) {
  json list = json::array();
  for (const auto& submodel : plan.submodels) {
    list.push_back({{"first_layer", submodel.first_layer},
                    {"end_layer", submodel.end_layer},
                    {"parameters", submodel.parameters},
                    {"borrowed", submodel.borrowed},
                    {"shard_elements", submodel.shard_elements}});
  }
  return list;
}

json ledger_to_json(const Ledger& ledger, bool with_reserves) {
  json pools = json::array();
  for (const auto& pool : ledger.pools) {
    json lines = json::array();
    for (const auto& line : pool.lines) {
      if (line.reserve && !with_reserves) continue;
      lines.push_back({{"what", line.what}, {"bytes", line.bytes.value}});
    }
    pools.push_back({{"pool", pool.name}, {"lines", lines}});
  }
  return pools;
}

// What the task graph follows from. Capacities and reserves are left out: they decide whether a
// plan fits, not what it does, and those of `host` change from minute to minute.
json essence(const Plan& plan) {
  json placement = json::array();
  for (const auto& gpu : plan.machine.gpus) placement.push_back(gpu.socket);
  json essence{{"version", kPlanVersion},
               {"sockets_of_gpus", placement},
               {"workload", workload_to_json(plan.workload)},
               {"strategy", strategy_to_json(plan.strategy)},
               {"submodels", submodels_to_json(plan)},
               {"memory", ledger_to_json(plan.memory, false)}};
  // Left out of one host's, as they were before there could be several.
  if (plan.hosts() > 1) essence["hosts"] = plan.hosts();
  return essence;
}

Strategy complete_strategy(const platform::Node& node) {
  const StrategyRequest request = read_strategy(node);
  const auto missing = [&node](const char* name) {
    return node.error(fmt::format("a plan fixes every knob; `{}` is missing", name));
  };
  Strategy strategy = fixed_knobs(request);
  for_each_knob(strategy, request, [&](const char* name, const auto&, const auto& fixed) {
    if (!fixed) throw missing(name);
  });
  if (!request.cuts && !request.layers_per_submodel) throw missing("layers_per_submodel");
  return strategy;
}

// The largest integer a JSON number carries exactly through a double.
constexpr std::int64_t kLargestInteger = std::int64_t{1} << 53;

void check_submodels(const Plan& plan, const platform::Node& node) {
  const auto items = node.items();
  if (items.size() != plan.submodels.size()) {
    throw node.error(fmt::format("{} sub-models listed, the strategy makes {}", items.size(),
                                 plan.submodels.size()));
  }
  for (std::size_t k = 0; k < items.size(); ++k) {
    const auto expect = [&item = items[k]](const char* key, std::int64_t value) {
      const auto entry = item.at(key);
      if (entry.integer(0, kLargestInteger) != value) {
        throw entry.error(fmt::format("{} written, {} follows from workload and strategy",
                                      entry.integer(0, kLargestInteger), value));
      }
    };
    const auto& submodel = plan.submodels[k];
    items[k].allow_keys({"first_layer", "end_layer", "parameters", "borrowed", "shard_elements"});
    expect("first_layer", static_cast<std::int64_t>(submodel.first_layer));
    expect("end_layer", static_cast<std::int64_t>(submodel.end_layer));
    expect("parameters", submodel.parameters);
    expect("borrowed", submodel.borrowed);
    expect("shard_elements", submodel.shard_elements);
  }
}

}  // namespace

std::string plan_hash(const Plan& plan) {
  const std::string text = essence(plan).dump();
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

json plan_to_json(const Plan& plan) {
  return {{"offstage_plan", kPlanVersion},
          {"plan_hash", plan_hash(plan)},
          {"platform", json::parse(plan.machine.reference)},
          {"workload", workload_to_json(plan.workload)},
          {"strategy", strategy_to_json(plan.strategy)},
          {"submodels", submodels_to_json(plan)},
          {"memory", ledger_to_json(plan.memory, true)},
          {"reasons", plan.reasons}};
}

void write_plan(const Plan& plan, const std::string& path) {
  std::ofstream out(path, std::ios::trunc);
  out << plan_to_json(plan).dump(1) << '\n';
  out.close();
  if (!out) throw Error(ErrorCode::io, fmt::format("cannot write the plan to {}", path));
}

bool is_plan_document(const platform::Document& document) {
  return document.root().is_map() && document.root().find("offstage_plan").has_value();
}

platform::Node plan_platform(const platform::Document& document) {
  const auto root = document.root();
  root.at("offstage_plan").integer(kPlanVersion, kPlanVersion);
  return root.at("platform");
}

Plan read_plan(const platform::Document& document, const platform::Machine& machine) {
  const auto root = document.root();
  root.allow_keys({"offstage_plan", "plan_hash", "platform", "workload", "strategy", "submodels",
                   "memory", "reasons"});
  root.at("offstage_plan").integer(kPlanVersion, kPlanVersion);
  const auto workload = workloads::read_workload(root.at("workload"), "");
  const auto strategy_node = root.at("strategy");
  Plan plan;
  try {
    plan = make_plan(machine, workload, complete_strategy(strategy_node));
  } catch (const Error& error) {
    if (error.where()) throw;
    throw strategy_node.error(error.what());
  }
  for (const auto& reason : root.at("reasons").items()) plan.reasons.push_back(reason.text());
  const auto hash_node = root.at("plan_hash");
  check_submodels(plan, root.at("submodels"));
  if (hash_node.text() != plan_hash(plan)) {
    throw hash_node.error(
        fmt::format("plan {} does not follow from this file on machine {} with {} GPUs (it would "
                    "be {}): the file "
                    "was edited, or the machine or this version differs; run `offstage plan` again",
                    hash_node.text(), machine.name, machine.gpus.size(), plan_hash(plan)));
  }
  return plan;
}

}  // namespace offstage::scheduler
