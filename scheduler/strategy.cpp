#include "scheduler/strategy.h"

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

}  // namespace

std::string to_string(ActivationPlace place) {
  return place == ActivationPlace::gpu ? "gpu" : "cpu";
}

std::string to_string(PolicyKind policy) {
  switch (policy) {
    case PolicyKind::fifo:
      return "fifo";
    case PolicyKind::planned:
      return "planned";
    case PolicyKind::critical_path:
      return "critical_path";
  }
  return "unknown";
}

PolicyKind policy_from_string(const std::string& name) {
  for (const auto kind : {PolicyKind::fifo, PolicyKind::planned, PolicyKind::critical_path}) {
    if (to_string(kind) == name) return kind;
  }
  throw Error(ErrorCode::bad_usage,
              "policy '" + name + "' is unknown; allowed: fifo, planned, critical_path");
}

StrategyRequest read_strategy(const platform::Node& node) {
  StrategyRequest request;
  if (node.is_scalar()) {
    node.choice({"auto"});
    return request;
  }
  if (!node.is_map()) throw node.error("must be `auto` or a map of knobs");
  node.allow_keys({"split", "layers_per_submodel", "micro_batch", "weight_slots", "gradient_slots",
                   "host_gradient_slots", "activations", "spare_activation_slots", "policy",
                   "submit_ahead"});
  if (const auto split = node.find("split")) split->choice({"batch"});
  read_count(node, "layers_per_submodel", 1, kLargestKnob, request.layers_per_submodel);
  read_count(node, "micro_batch", 1, kLargestKnob, request.micro_batch);
  read_count(node, "weight_slots", 1, kMostSlots, request.weight_slots);
  read_count(node, "gradient_slots", 1, kMostSlots, request.gradient_slots);
  read_count(node, "host_gradient_slots", 1, kMostSlots, request.host_gradient_slots);
  read_count(node, "spare_activation_slots", 1, kMostSlots, request.spare_activation_slots);
  read_count(node, "submit_ahead", 1, kMostSlots, request.submit_ahead);
  if (const auto place = node.find("activations")) {
    request.activations =
        place->choice({"gpu", "cpu"}) == "gpu" ? ActivationPlace::gpu : ActivationPlace::cpu;
  }
  if (const auto policy = node.find("policy")) {
    request.policy = policy_from_string(policy->choice({"fifo", "planned", "critical_path"}));
  }
  return request;
}

}  // namespace offstage::scheduler
