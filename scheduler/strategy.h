#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "platform/document.h"

// The knobs of a plan. A user fixes any of them in the config's `strategy` map; the planner chooses
// the rest.
namespace offstage::scheduler {

enum class Split { batch };

// Where the activations at the cuts between sub-models wait for the backward pass.
enum class ActivationPlace { gpu, cpu };

enum class PolicyKind { fifo, planned, critical_path };

struct Strategy {
  Split split = Split::batch;
  std::int64_t layers_per_submodel = 1;  // blocks; embedding and head are sub-models of their own
  std::int64_t micro_batch = 1;          // sequences a GPU works on at once
  int weight_slots = 2;                  // sub-models' weights a GPU holds at once
  int gradient_slots = 1;                // sub-models' gradients a GPU holds at once
  int host_gradient_slots = 2;           // sub-models' gradients waiting for the optimizer
  ActivationPlace activations = ActivationPlace::gpu;
  // With activations on the CPU: boundary activations a GPU has room for beyond the one of each
  // micro-batch, so that fetches run ahead.
  int spare_activation_slots = 2;
  PolicyKind policy = PolicyKind::planned;
  int submit_ahead = 4;  // tasks in flight per engine, queued ones included
};

// What the user fixed; the rest is the planner's to choose.
struct StrategyRequest {
  std::optional<std::int64_t> layers_per_submodel;
  std::optional<std::int64_t> micro_batch;
  std::optional<int> weight_slots;
  std::optional<int> gradient_slots;
  std::optional<int> host_gradient_slots;
  std::optional<ActivationPlace> activations;
  std::optional<int> spare_activation_slots;
  std::optional<PolicyKind> policy;
  std::optional<int> submit_ahead;
};

// Reads `auto` or a map of knobs.
// Errors: Error(bad_input) with place, allowed values and nearest match.
StrategyRequest read_strategy(const platform::Node& node);

std::string to_string(ActivationPlace place);
std::string to_string(PolicyKind policy);
// Errors: Error(bad_usage) that lists the policies.
PolicyKind policy_from_string(const std::string& name);

}  // namespace offstage::scheduler
