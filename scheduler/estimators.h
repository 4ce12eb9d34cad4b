#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platform/machine.h"
#include "workloads/layer_table.h"

// What published estimators and rules of thumb would have answered to the same question, each with
// its formula, so that a user who comes with such a number can see where it differs from the plan's
// ledger. They are closed forms over parameters and GPUs: none of them knows activations beyond a
// constant, logits, slots, pinned buffers or what the system takes.
//
//   for (const auto& answer : other_estimates(estimator_input(table, gpus)))
//     answer.name, answer.gpu, estimate_fits(answer, machine)
namespace offstage::scheduler {

struct EstimatorInput {
  std::int64_t parameters = 0;
  std::int64_t headless = 0;  // without the output matrix of an untied head: what AutoModel holds
  // Of the largest torch module's own parameters, sub-modules left out: a matrix, mostly the word
  // embedding or one of the feed-forward's; never a whole block.
  std::int64_t largest_module = 0;
  std::int64_t layers = 0;  // blocks
  std::int64_t gpus = 1;    // of one node
};
EstimatorInput estimator_input(const workloads::LayerTable& table, std::int64_t gpus);

struct Estimate {
  std::string name;     // "DeepSpeed ZeRO-3, all on the CPU"
  std::string formula;  // in P (parameters), L (largest module), n (GPUs), D (blocks)
  std::string source;
  platform::Bytes gpu;                  // of each GPU
  std::optional<platform::Bytes> host;  // of the node; absent: the estimator says nothing of it
};

// Fixed order: DeepSpeed ZeRO-2 and ZeRO-3 with and without offload, the 16-, 18- and 20-byte rules
// on the GPUs and in CPU memory, accelerate's estimate-memory, MegaTrain's calc_resource.
std::vector<Estimate> other_estimates(const EstimatorInput& input);

// Whether the machine has that much: the smallest GPU's memory and all sockets' together, whole,
// as a user of these formulas would read them off a data sheet.
bool estimate_fits(const Estimate& estimate, const platform::Machine& machine);

}  // namespace offstage::scheduler
