#include "scheduler/strategy.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "scheduler/policies/registry.h"

namespace offstage::scheduler {
namespace {

// More sequences, layers or slots than this is a slip of the keyboard, not a plan.
constexpr std::int64_t kLargestKnob = 1'000'000;
constexpr std::int64_t kMostSlots = 1024;

template <typename T>
void read_count(const platform::Node& node, const std::string& key, std::int64_t low,
                std::int64_t high, std::optional<T>& knob) {
  if (const auto value = node.find(key)) knob = static_cast<T>(value->integer(low, high));
}

// A number of blocks for every sub-model, or a list with the blocks of each.
void read_packs(const platform::Node& node, StrategyRequest& request) {
  const auto packs = node.find("layers_per_submodel");
  if (!packs) return;
  if (!packs->is_sequence()) {
    request.layers_per_submodel = packs->integer(1, kLargestKnob);
    return;
  }
  request.cuts.emplace();
  for (const auto& item : packs->items()) request.cuts->push_back(item.integer(1, kLargestKnob));
  if (request.cuts->empty()) throw packs->error("a list of cuts needs at least one sub-model");
}

// `auto`, `even`, or the micro-batches of each GPU.
void read_shares(const platform::Node& node, StrategyRequest& request) {
  const auto shares = node.find("shares");
  if (!shares) return;
  if (!shares->is_sequence()) {
    if (shares->choice({"auto", "even"}) == "even") request.shares.emplace();
    return;
  }
  request.shares.emplace();
  for (const auto& item : shares->items()) {
    request.shares->push_back(item.integer(1, kLargestKnob));
  }
  if (request.shares->empty()) throw shares->error("a list of shares needs one for each GPU");
}

void read_split(const platform::Node& node, StrategyRequest& request) {
  read_count(node, "tensor_ways", 1, kLargestKnob, request.tensor_ways);
  const auto split = node.find("split");
  if (!split) return;
  request.split = split->choice({"batch", "tensor"}) == "batch" ? Split::batch : Split::tensor;
  const std::int64_t ways = request.tensor_ways.value_or(request.split == Split::batch ? 1 : 2);
  if ((request.split == Split::batch) != (ways == 1)) {
    throw node.at("tensor_ways")
        .error(fmt::format("{} contradicts split {}: batch has 1 way, tensor has more", ways,
                           to_string(*request.split)));
  }
}

void read_choices(const platform::Node& node, StrategyRequest& request) {
  if (const auto place = node.find("activations")) {
    request.activations =
        place->choice({"gpu", "cpu"}) == "gpu" ? ActivationPlace::gpu : ActivationPlace::cpu;
  }
  if (const auto memory = node.find("host_memory")) {
    request.host_memory =
        memory->choice({"near", "all"}) == "near" ? HostMemory::near : HostMemory::all;
  }
  if (const auto moments = node.find("moments")) {
    request.moments =
        moments->choice({"f32", "bf16"}) == "f32" ? MomentPrecision::f32 : MomentPrecision::bf16;
  }
  if (const auto clipping = node.find("clipping")) {
    request.clipping =
        clipping->choice({"none", "exact"}) == "none" ? Clipping::none : Clipping::exact;
  }
  if (const auto policy = node.find("policy")) {
    request.policy = policy_from_string(policy->choice(policy_names()));
  }
}

}  // namespace

std::string to_string(Split split) { return split == Split::batch ? "batch" : "tensor"; }

std::string to_string(ActivationPlace place) {
  return place == ActivationPlace::gpu ? "gpu" : "cpu";
}

std::string to_string(HostMemory memory) { return memory == HostMemory::near ? "near" : "all"; }

std::string to_string(PolicyKind policy) {
  return std::string(registered_policies()[static_cast<std::size_t>(policy)].name);
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const RegisteredPolicy& policy : registered_policies()) names.emplace_back(policy.name);
  return names;
}

PolicyKind policy_from_string(const std::string& name) {
  const auto names = policy_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<PolicyKind>(found - names.begin());
  throw Error(ErrorCode::bad_usage,
              fmt::format("policy '{}' is unknown; allowed: {}", name, fmt::join(names, ", ")));
}

std::string to_string(MomentPrecision precision) {
  return precision == MomentPrecision::f32 ? "f32" : "bf16";
}

std::string to_string(Clipping clipping) { return clipping == Clipping::none ? "none" : "exact"; }

StrategyRequest read_strategy(const platform::Node& node) {
  StrategyRequest request;
  if (node.is_scalar()) {
    node.choice({"auto"});
    return request;
  }
  if (!node.is_map()) throw node.error("must be `auto` or a map of knobs");
  node.allow_keys({"split",
                   "tensor_ways",
                   "layers_per_submodel",
                   "micro_batch",
                   "shares",
                   "weight_slots",
                   "gradient_slots",
                   "host_gradient_slots",
                   "activations",
                   "spare_activation_slots",
                   "host_memory",
                   "resident_state",
                   "resident_weights",
                   "kept_activations",
                   "nvme_state",
                   "nvme_slots",
                   "moments",
                   "clipping",
                   "policy",
                   "submit_ahead"});
  read_split(node, request);
  read_packs(node, request);
  read_shares(node, request);
  read_count(node, "micro_batch", 1, kLargestKnob, request.micro_batch);
  read_count(node, "weight_slots", 1, kMostSlots, request.weight_slots);
  read_count(node, "gradient_slots", 1, kMostSlots, request.gradient_slots);
  read_count(node, "host_gradient_slots", 1, kMostSlots, request.host_gradient_slots);
  read_count(node, "spare_activation_slots", 1, kMostSlots, request.spare_activation_slots);
  read_count(node, "resident_state", 0, kLargestKnob, request.resident_state);
  read_count(node, "resident_weights", 0, kLargestKnob, request.resident_weights);
  read_count(node, "kept_activations", 0, kLargestKnob, request.kept_activations);
  read_count(node, "nvme_state", 0, kLargestKnob, request.nvme_state);
  read_count(node, "nvme_slots", 1, kMostSlots, request.nvme_slots);
  read_count(node, "submit_ahead", 1, kMostSlots, request.submit_ahead);
  read_choices(node, request);
  return request;
}

}  // namespace offstage::scheduler
