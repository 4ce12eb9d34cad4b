#pragma once

#include "scheduler/strategy.h"

// The list of knobs, in one place: what reads, writes, compares or completes strategies goes
// through it, so that a new knob cannot be forgotten in one of them.
namespace offstage::scheduler {

// Calls visit(name, strategy.knob, request.knob) for every knob that the planner may choose, but
// for the cuts, which are one of two fields, and the shares, which most plans have not.
template <typename S, typename R, typename Visit>
void for_each_knob(S& strategy, R& request, const Visit& visit) {
  visit("tensor_ways", strategy.tensor_ways, request.tensor_ways);
  visit("micro_batch", strategy.micro_batch, request.micro_batch);
  visit("weight_slots", strategy.weight_slots, request.weight_slots);
  visit("gradient_slots", strategy.gradient_slots, request.gradient_slots);
  visit("host_gradient_slots", strategy.host_gradient_slots, request.host_gradient_slots);
  visit("activations", strategy.activations, request.activations);
  visit("spare_activation_slots", strategy.spare_activation_slots, request.spare_activation_slots);
  visit("host_memory", strategy.host_memory, request.host_memory);
  visit("resident_state", strategy.resident_state, request.resident_state);
  visit("resident_weights", strategy.resident_weights, request.resident_weights);
  visit("kept_activations", strategy.kept_activations, request.kept_activations);
  visit("nvme_state", strategy.nvme_state, request.nvme_state);
  visit("nvme_slots", strategy.nvme_slots, request.nvme_slots);
  visit("policy", strategy.policy, request.policy);
  visit("submit_ahead", strategy.submit_ahead, request.submit_ahead);
}

// A strategy with the fixed knobs set and the others at their defaults.
Strategy fixed_knobs(const StrategyRequest& request);

// The request that leaves nothing of `strategy` open.
StrategyRequest every_knob(const Strategy& strategy);

// Whether a request leaves nothing to choose.
bool fixes_every_knob(const StrategyRequest& request);

// What tells one strategy from another.
std::string key_of(const Strategy& strategy);

}  // namespace offstage::scheduler
