#pragma once

#include "scheduler/ledger.h"
#include "scheduler/profile.h"
#include "scheduler/systems/system_plan.h"

// A GPU's part of the ledger of a published system.
namespace offstage::scheduler::systems {

// Parameters, gradients, optimizer state, buffers and activations of a GPU of that stage.
std::vector<LedgerLine> gpu_lines(const SystemPlan& plan, const Profile& profile,
                                  std::size_t stage);

}  // namespace offstage::scheduler::systems
