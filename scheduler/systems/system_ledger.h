#pragma once

#include "scheduler/ledger.h"
#include "scheduler/profile.h"
#include "scheduler/systems/system_plan.h"

// What every byte of every pool is for while a published system trains.
namespace offstage::scheduler::systems {

// Reads everything of the plan but `memory`.
Ledger make_system_ledger(const SystemPlan& plan, const Profile& profile);

}  // namespace offstage::scheduler::systems
