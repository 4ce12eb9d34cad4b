#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/planner.h"

// The strategies a request leaves open, and which of them fit. Private to planner.h.
namespace offstage::scheduler {

// Values a knob may take, the user's alone where it is fixed; in the order in which equally good
// ones are preferred.
struct OpenKnobs {
  std::vector<std::int64_t> ways;   // tensor_ways
  std::vector<std::int64_t> packs;  // layers_per_submodel
  std::vector<ActivationPlace> places;
};
// Errors: Error(bad_input) when the global batch can't be dealt to the GPUs.
OpenKnobs open_knobs(const PlanningInput& input);

// Micro-batches that deal out the global batch with so many tensor_ways, evenly or as best_shares
// says, smallest first.
// Errors: Error(bad_input) when none does.
std::vector<std::int64_t> open_micro_batches(const PlanningInput& input, std::int64_t ways);

// Sub-models between embedding and head.
std::int64_t block_submodels(const PlanningInput& input, const Strategy& strategy);

// Whether sub-models' whole state may be on the GPUs: neither clipping nor several hosts ask for
// all gradients in CPU memory.
bool state_may_reside(const PlanningInput& input, const Strategy& strategy);

// Whether a step has so few samples that a tensor split is tried even where a batch split fits.
bool few_samples(const PlanningInput& input);

// What the request fixes, and the host memory that suits how the GPUs hang on the sockets.
Strategy starting_strategy(const PlanningInput& input);

// Bytes a plan lacks, by kind of pool; 0 where it fits.
struct Shortfall {
  platform::Bytes gpu, host, nvme;
  bool none() const { return gpu.value == 0 && host.value == 0 && nvme.value == 0; }
  platform::Bytes worst() const;
};
Shortfall shortfall_of(const Plan& plan);

// The plans that fit with this strategy's cuts, micro-batch and slots: with as little state on the
// GPUs as CPU memory allows, with as much as fits, and with kept activations instead. NVMe takes
// what fits nowhere else. Empty when nothing fits. Knobs the user fixed stay.
std::vector<Plan> fitting_plans(const PlanningInput& input, const Strategy& strategy);

// The plan with single slots for these cuts and micro-batch, and as much state on the GPUs as they
// hold: what to show when nothing fits.
Plan least_plan(const PlanningInput& input, Strategy strategy);

}  // namespace offstage::scheduler
